
# Copyright (c) 2026, the pgnetlat authors

# Exchanges, and how their time is split: the forms of requests in the protocol,
# each sent by a client that does exactly one known thing for a known time.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# Waits outside a transaction are not what is tested here: they are never idle.
my ($node, $observer) =
  start_node('protocol', conf => "pgnetlat.idle_threshold = '1h'\n");
$observer->run(
	'CREATE TABLE items (id int PRIMARY KEY, note text)',
	q{CREATE FUNCTION slow_to_plan() RETURNS int LANGUAGE plpgsql IMMUTABLE
	  AS 'BEGIN PERFORM pg_sleep(0.5); RETURN 1; END'},
	q{CREATE FUNCTION slow_trigger() RETURNS trigger LANGUAGE plpgsql
	  AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END'},
	q{CREATE PROCEDURE commits() LANGUAGE plpgsql
	  AS 'BEGIN FOR i IN 1..3 LOOP INSERT INTO items VALUES (i); COMMIT; END LOOP; END'},
	'CREATE TABLE large AS SELECT g AS id, g::text AS note
	 FROM generate_series(1, 20000) g',
	'CREATE TABLE slow_to_commit (id int)',
	'CREATE TABLE unique_late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)',
	'CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON slow_to_commit
	 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow_trigger()'
);

# Runs a function on a fresh session and returns what its account gained, once
# it has answered "requests" requests more.  Also checks the counts.
sub gain
{
	my ($name, $expected, $function, %options) = @_;
	my $client = PgNetlat::Client->connect($node, %options);

	$client->run(@{ $options{before} }) if $options{before};
	my $before = $observer->settled($client);
	my $received = $client->received;
	$function->($client);
	my $after = $observer->settled($client,
		$before->{requests} + $expected->{requests});
	my $gain = delta($before, $after);

	is($gain->{$_}, $expected->{$_}, "$name: $_ is correct")
	  foreach sort keys %$expected;
	is( $gain->{bytes_sent},
		$client->received - $received,
		"$name: every byte is counted");
	$client->finish;
	return $gain;
}

# ---------------------------------------------------------------------------
# Counts
# ---------------------------------------------------------------------------

foreach my $tcp (0, 1)
{
	my $over = $tcp ? 'TCP' : 'Unix socket';

	gain(
		"simple statements, $over",
		{
			qw(requests 20  statements 20  transactions 20  pipelined 0  round_trips 20)
		},
		sub { $_[0]->run(('SELECT 1') x 20) },
		tcp => $tcp);

	gain(
		"extended protocol, $over",
		{
			qw(requests 20  statements 20  transactions 20  pipelined 0  round_trips 20)
		},
		sub {
			my ($client) = @_;
			for (1 .. 20)
			{
				$client->put(
					parse('', 'SELECT $1::int'),
					bind_('', '', $_),
					describe('P', ''),
					execute(''), sync());
				$client->responses;
			}
		},
		tcp => $tcp);

	gain(
		"pipeline of requests, $over",
		{
			qw(requests 6  statements 6  transactions 6  pipelined 5  round_trips 1)
		},
		sub {
			my ($client) = @_;
			$client->put((extended('SELECT 1') . sync()) x 6);
			$client->responses(6);
		},
		tcp => $tcp);

	gain(
		"pipeline of simple statements, $over",
		{qw(requests 6  statements 6  pipelined 5  round_trips 1)},
		sub {
			my ($client) = @_;
			$client->put(query('SELECT 1') x 6);
			$client->responses(6);
		},
		tcp => $tcp);
}

# The second request comes while the first one executes.
foreach my $tcp (0, 1)
{
	gain(
		'request that does not wait for the answer before'
		  . ($tcp ? ', TCP' : ''),
		{ requests => 4, pipelined => 1, round_trips => 3 },
		sub {
			my ($client) = @_;
			$client->run('SELECT 1');
			$client->put(query('SELECT pg_sleep(2)'));
			pause(100);
			$client->put(query('SELECT 1'));
			$client->responses(2);
			$client->run('SELECT 1');
		},
		tcp => $tcp);
}

# The first request comes before the server is ready for it.
my $hasty = PgNetlat::Client->connect($node, early => query('SELECT 1'));
$hasty->responses;
$hasty->run('SELECT 1');
is($observer->settled($hasty)->{requests},
	$hasty->responded,
	'a request right behind the startup message is counted');
$hasty->finish;

gain(
	'several statements in one message',
	{
		qw(requests 1  statements 3  transactions 1  pipelined 0  round_trips 1)
	},
	sub { $_[0]->run('SELECT 1; SELECT 2; SELECT 3') });

gain(
	'empty query',
	{ requests => 1, statements => 0, round_trips => 1 },
	sub { $_[0]->run('') });

gain(
	'transaction of five statements',
	{ requests => 5, statements => 5, transactions => 1 },
	sub { $_[0]->run('BEGIN', ('SELECT 1') x 3, 'COMMIT') });

gain(
	'transaction rolled back',
	{ requests => 3, statements => 3, transactions => 1 },
	sub { $_[0]->run('BEGIN', 'SELECT 1', 'ROLLBACK') });

gain(
	'savepoints',
	{ requests => 7, statements => 6, transactions => 1 },
	sub {
		my ($client) = @_;
		$client->run('BEGIN', 'SAVEPOINT s', 'SELECT 1');
		$client->error_of('SELECT 1/0');
		$client->run('ROLLBACK TO s', 'RELEASE s', 'COMMIT');
	});

gain(
	'procedure that commits',
	{ requests => 1, statements => 1 },
	sub { $_[0]->run('CALL commits()') });

gain(
	'parallel workers',
	{ requests => 1, statements => 1, transactions => 1 },
	sub { $_[0]->run('SELECT count(*), sum(id), max(note) FROM large') },
	before => [
		'SET parallel_setup_cost = 0',
		'SET parallel_tuple_cost = 0',
		'SET min_parallel_table_scan_size = 0'
	]);

gain(
	'cursor',
	{ requests => 7, statements => 7, transactions => 1 },
	sub {
		$_[0]->run(
			'BEGIN',
			'DECLARE c CURSOR FOR SELECT generate_series(1, 100)',
			('FETCH 10 FROM c') x 3,
			'CLOSE c', 'COMMIT');
	});

gain(
	'portal with a limit of rows',
	{ requests => 5, round_trips => 5, transactions => 1 },
	sub {
		my ($client) = @_;
		$client->run('BEGIN');
		$client->put(
			parse('', 'SELECT generate_series(1, 25)'),
			bind_('p', ''),
			execute('p', 10), sync());
		$client->responses;
		for (1 .. 2)
		{
			$client->put(execute('p', 10), sync());
			$client->responses;
		}
		$client->run('COMMIT');
	});

gain(
	'prepared statement, closed at the end',
	{ requests => 12, statements => 10, round_trips => 12 },
	sub {
		my ($client) = @_;
		$client->put(parse('s', 'SELECT $1::int'), describe('S', 's'),
			sync());
		$client->responses;
		for (1 .. 10)
		{
			$client->put(bind_('', 's', $_), execute(''), sync());
			$client->responses;
		}
		$client->put(close_('S', 's'), sync());
		$client->responses;
	});

gain(
	'large result',
	{ requests => 1, statements => 1 },
	sub {
		$_[0]
		  ->run(q{SELECT repeat('x', 1000) FROM generate_series(1, 20000)});
	});

gain(
	'one row larger than all buffers',
	{ requests => 2, statements => 2 },
	sub { $_[0]->run((q{SELECT repeat('x', 3000000)}) x 2) });

# ---------------------------------------------------------------------------
# Execution
# ---------------------------------------------------------------------------

my $gain = gain(
	'statements under one Sync',
	{qw(requests 1  statements 4  transactions 1  pipelined 0)},
	sub {
		my ($client) = @_;
		$client->put((extended('SELECT pg_sleep(0.15)')) x 4, sync());
		$client->responses;
	});
at_least($gain->{exec_time}, 600,
	'statements under one Sync: all of them execute');

$gain = gain(
	'pipeline of slow requests',
	{ requests => 4, pipelined => 3 },
	sub {
		my ($client) = @_;
		$client->put(query('SELECT pg_sleep(0.15)') x 4);
		$client->responses(4);
	});
at_least($gain->{exec_time}, 600,
	'pipeline of slow requests: all of them execute');

$gain = gain(
	'slow planner',
	{ requests => 2, statements => 1 },
	sub {
		my ($client) = @_;
		$client->put(parse('s', 'SELECT slow_to_plan()'), sync());
		$client->responses;
		$client->put(bind_('', 's'), execute(''), sync());
		$client->responses;
	});
at_least($gain->{exec_time}, 500, 'slow planner: planning is execution');

$gain = gain(
	'function call',
	{ requests => 3, transactions => 3 },
	sub {
		my ($client) = @_;

		$client->put(
			function_call($observer->oid('pg_sleep(float8)'), '0.3'));
		$client->responses;
		for (1 .. 2)
		{
			$client->put(
				function_call($observer->oid('int4pl(int,int)'), '1', '2'));
			my ($result) = grep { $_->{type} eq 'V' } $client->until('Z');
			is( $result->{body},
				pack('N/a*', '3'),
				'function call: the result is right');
		}
	});
at_least($gain->{exec_time}, 300,
	'function call: the time of the function is execution');

# ---------------------------------------------------------------------------
# Waits
# ---------------------------------------------------------------------------

my $paused;

$gain = gain(
	'pause between statements',
	{ requests => 2 },
	sub {
		my ($client) = @_;
		$client->run('SELECT 1');
		$paused = pause(500);
		$client->run('SELECT 1');
	});
at_least($gain->{client_time}, $paused,
	'pause between statements: the pause is client time');
is($gain->{network_time}, 0,
	'pause between statements: no network time on a Unix-domain socket');
at_most_beside($gain->{exec_time}, $paused, $gain,
	'pause between statements: the pause is not execution');
is($gain->{in_xact_wait_time},
	0, 'pause between statements: the pause is not in a transaction');

$gain = gain(
	'pause between statements over TCP',
	{ requests => 2 },
	sub {
		my ($client) = @_;
		$client->run('SELECT 1');
		$paused = pause(500);
		$client->run('SELECT 1');
	},
	tcp => 1);
at_least(waited($gain), $paused,
	'pause between statements over TCP: the pause is a wait');

$gain = gain(
	'pause in a transaction',
	{ requests => 3, transactions => 1 },
	sub {
		my ($client) = @_;
		$client->run('BEGIN');
		$paused = pause(500);
		$client->run('SELECT 1', 'COMMIT');
	});
at_least($gain->{in_xact_wait_time},
	$paused, 'pause in a transaction: in_xact_wait_time has the pause');

$gain = gain(
	'pause in an aborted transaction',
	{ requests => 3, transactions => 1 },
	sub {
		my ($client) = @_;
		$client->run('BEGIN');
		$client->error_of('SELECT 1/0');
		$paused = pause(500);
		$client->run('ROLLBACK');
	});
at_least($gain->{in_xact_wait_time},
	$paused,
	'pause in an aborted transaction: in_xact_wait_time has the pause');

$gain = gain(
	'half a message',
	{ requests => 2, statements => 2 },
	sub {
		my ($client) = @_;
		my $message = query('SELECT 1 /* the end of this comes late */');

		$client->run('SELECT 1');
		$client->put(substr($message, 0, 12));
		$paused = pause(500);
		$client->put(substr($message, 12));
		$client->responses;
	});
at_least($gain->{client_time}, $paused,
	'half a message: the pause is client time');
at_most_beside($gain->{exec_time}, $paused, $gain,
	'half a message: the pause is not execution');

$gain = gain(
	'message type without its length',
	{ requests => 1 },
	sub {
		my ($client) = @_;
		my $message = query('SELECT 1');

		$client->put(substr($message, 0, 1));
		$paused = pause(500);
		$client->put(substr($message, 1));
		$client->responses;
	});
at_least(waited($gain), $paused,
	'message type without its length: the pause is a wait');
at_most_beside($gain->{exec_time}, $paused, $gain,
	'message type without its length: the pause is not execution');

# Core calls this active.
my ($in_core, $in_progress);
$gain = gain(
	'Flush without Sync',
	{ requests => 2, statements => 1, transactions => 1, round_trips => 2 },
	sub {
		my ($client) = @_;
		$client->put(parse('', 'SELECT 1'), describe('S', ''), flush());
		$client->until('T');
		my $start = now();
		$in_progress = $observer->await($client->pid,
			sub { $_->{state} eq 'waiting in transaction' });
		$in_core = $observer->value(
			'SELECT state FROM pg_stat_activity WHERE pid = ' . $client->pid);
		pause($start + 500 - now());
		$paused = now() - $start;
		$client->put(bind_('', ''), execute(''), sync());
		$client->responses;
	});
is($in_core, 'active', 'Flush without Sync: core does not see the wait');
ok($in_progress, 'Flush without Sync: the wait is seen while it lasts');
at_least($gain->{in_xact_wait_time},
	$paused, 'Flush without Sync: the pause is a wait in a transaction');
cmp_ok(
	$gain->{exec_time}, '<',
	$paused * 0.8,
	'Flush without Sync: the pause is not execution');

$gain = gain(
	'Sync alone after Flush',
	{ statements => 1, transactions => 1, requests => 2 },
	sub {
		my ($client) = @_;
		$client->put(extended('INSERT INTO slow_to_commit VALUES (1)'),
			flush());
		$client->until('C');
		$paused = pause(300);
		$client->put(sync());
		$client->responses;
	});
at_least($gain->{in_xact_wait_time},
	$paused, 'Sync alone after Flush: the pause is a wait in a transaction');
at_least($gain->{exec_time}, 500,
	'Sync alone after Flush: the commit is execution');

# Nothing runs before the error that could be noticed: no query, no planner.
foreach my $tcp (0, 1)
{
	my $over = $tcp ? 'TCP' : 'Unix socket';

	gain(
		"Sync alone after Flush, which cannot commit, $over",
		{qw(requests 6  statements 3  transactions 3  round_trips 6)},
		sub {
			my ($client) = @_;
			for (1 .. 3)
			{
				$client->put(
					extended('INSERT INTO unique_late VALUES (1), (1)'),
					flush());
				$client->until('C');
				$client->put(sync());
				ok( (grep { $_->{type} eq 'E' } $client->until('Z')),
					"Sync alone after Flush, which cannot commit, $over: it fails"
				);
			}
		},
		tcp => $tcp);

	# core looks for the timeout when it has read the next message
	gain(
		"statement_timeout between Parse and Bind, $over",
		{ requests => 2, statements => 0, round_trips => 2 },
		sub {
			my ($client) = @_;
			$client->put(parse('', 'SELECT 1'), describe('S', ''), flush());
			$client->until('T');
			pause(700);
			$client->put(bind_('', ''), execute(''), sync());
			ok( (grep { $_->{type} eq 'E' } $client->until('Z')),
				"statement_timeout between Parse and Bind, $over: it fails");
		},
		tcp => $tcp,
		options => '-c statement_timeout=500');
}

# ---------------------------------------------------------------------------
# Errors and notices
# ---------------------------------------------------------------------------

gain(
	'errors',
	{ requests => 6, round_trips => 6, transactions => 6 },
	sub {
		my ($client) = @_;
		for (1 .. 3)
		{
			is( $client->error_of('SELECT 1/0'),
				'division by zero',
				'errors: the server reports division by zero');
			$client->run('SELECT 1');
		}
	});

gain(
	'errors in the extended protocol',
	{ requests => 3, round_trips => 3, statements => 0 },
	sub {
		my ($client) = @_;

		# in Parse, Bind and Execute
		foreach (
			[ 'SELEC', '1' ],
			[ 'SELECT $1::int', 'one' ],
			[ 'SELECT 1 / $1::int', '0' ])
		{
			my ($sql, $value) = @$_;
			$client->put(extended($sql, $value), sync());
			ok( (grep { $_->{type} eq 'E' } $client->until('Z')),
				'errors in the extended protocol: the server reports each');
		}
	});

gain(
	'errors in a pipeline',
	{ requests => 3, pipelined => 2, statements => 2 },
	sub {
		my ($client) = @_;
		my $good = extended('SELECT 1');
		my $bad = extended('SELECT 1 / 0');

		# what follows the error up to Sync is skipped
		$client->put($good, sync(), $bad, $good, sync(), $good, sync());
		$client->until('Z') for 1 .. 3;
	});

$gain = gain(
	'error, and Sync much later',
	{},
	sub {
		my ($client) = @_;
		$client->run('SELECT 1');
		$client->put(extended('SELEC'), flush());
		$client->until('E');
		$paused = pause(500);
		$client->put(sync());
		$client->responses;
		$client->run('SELECT 1');
		$observer->settled($client);
	});

# The exchange goes on until Sync, for which a round trip is waited.
at_least(waited($gain) + $gain->{recv_time},
	$paused, 'error, and Sync much later: the pause is waiting or receiving');
at_most_beside($gain->{exec_time}, $paused, $gain,
	'error, and Sync much later: the pause is not execution');

# Drivers that prepare with Flush send Sync only after the error.  On a Unix-domain
# socket it is not seen where it comes while the transaction is still being aborted.
foreach my $tcp (0, 1)
{
	my $over = $tcp ? 'TCP' : 'Unix socket';

	gain(
		"error, and Sync behind it, $over",
		{ qw(requests 20  statements 0), $tcp ? (round_trips => 40) : () },
		sub {
			my ($client) = @_;

			for (1 .. 20)
			{
				$client->put(parse('', 'SELEC'), describe('S', ''), flush());
				$client->until('E');
				$client->put(sync());
				$client->until('Z');
			}
		},
		tcp => $tcp);

	# a Flush that is read before a request
	gain(
		"request behind Flush, $over",
		{ requests => 20, pipelined => 0, round_trips => 20 },
		sub {
			my ($client) = @_;

			for (1 .. 20)
			{
				$client->put(flush(), extended('SELECT 1'), sync());
				$client->responses;
			}
		},
		tcp => $tcp);

	# Close behind Sync: nobody waits for what it answers
	my $closed = gain(
		"Close behind Sync, $over",
		{ requests => 11, pipelined => 0, round_trips => 11 },
		sub {
			my ($client) = @_;

			for (1 .. 10)
			{
				$client->put(extended('SELECT 1'), sync(), close_('S', 'x'));
				$client->responses;
				pause(20);
			}
			$client->put(sync());
			$client->responses;
		},
		tcp => $tcp);
	at_most_beside($closed->{exec_time}, 200, $closed,
		"Close behind Sync, $over: the pauses are not execution");

	gain(
		"Close and Flush, $over",
		{ requests => 2, round_trips => 2 },
		sub {
			my ($client) = @_;

			$client->put(close_('S', 'x'), flush());
			$client->until('3');
			$client->put(sync());
			$client->responses;
		},
		tcp => $tcp);

	# COPY from a client that is so close that it answers before flush() returns
	gain(
		"COPY without data, $over",
		{ requests => 50, round_trips => 100, statements => 50 },
		sub {
			my ($client) = @_;

			for (1 .. 50)
			{
				$client->put(query('COPY items (note) FROM STDIN'));
				$client->until('G');
				$client->put(copy_done());
				$client->responses;
			}
		},
		tcp => $tcp);
}

# A client that has not waited for the error is still sending.  On a Unix-domain
# socket the kernel does not say how much has come.
$gain = gain(
	'error before the rest of a large request',
	{ requests => 2, round_trips => 2, statements => 1 },
	sub {
		my ($client) = @_;
		my $rest = bind_('', '', 'x' x 200_000) . execute('') . sync();

		$client->put(parse('', 'SELEC'), substr($rest, 0, 100_000));
		$paused = pause(300);
		$client->put(substr($rest, 100_000));
		$client->until('Z');
		$client->run('SELECT 1');
	},
	tcp => 1);
at_least(
	$gain->{recv_time},
	$paused / 2,
	'error before the rest of a large request: the server was receiving');

# nor one that streams its requests
gain(
	'error in a streamed pipeline',
	{ requests => 3, round_trips => 3 },
	sub {
		my ($client) = @_;
		for (1 .. 3)
		{
			my $more = (extended('SELECT 1')) x 10;

			$client->put(parse('', 'SELEC'));
			pause(50);
			$client->put($more);
			pause(50);
			$client->put($more, sync());
			$client->until('Z');
		}
	},
	tcp => 1);

# Notifications, which are sent in a wait, are counted by the byte.  Those that come
# while a statement executes are sent behind it.
{
	my $other = PgNetlat::Client->connect($node);

	gain(
		'notifications in an exchange',
		{ requests => 2, transactions => 2 },
		sub {
			my ($client) = @_;

			for (1 .. 2)
			{
				$observer->settled($client->pid, 0);
				$client->put(query('SELECT pg_sleep(0.3)'));
				$observer->await($client->pid,
					sub { $_->{state} eq 'executing' });
				$other->run(('NOTIFY here') x 3);
				like(
					join('', map { $_->{type} } $client->until('Z')),
					qr/CA+Z/,
					'notifications in an exchange: they come behind its statement'
				);
			}
		},
		before => ['LISTEN here']);

	gain(
		'notifications',
		{ requests => 0 },
		sub {
			my ($client) = @_;

			$other->run('NOTIFY here');
			$client->until('A');
			pause(50);
		},
		before => ['LISTEN here']);
	$other->finish;
}

$gain = gain(
	'notice, then long execution',
	{ requests => 1, statements => 1, round_trips => 1 },
	sub {
		my ($client) = @_;
		$client->put(
			query(
				q{DO 'BEGIN RAISE NOTICE ''halfway''; PERFORM pg_sleep(0.5); END'}
			));
		$client->until('N');
		my $seen =
		  $observer->await($client->pid, sub { $_->{state} eq 'executing' });
		ok($seen, 'notice, then long execution: the session is executing');
		$client->responses;
	});
at_least($gain->{exec_time}, 500,
	'notice, then long execution: all of it is execution');
at_most_beside(waited($gain), 500, $gain,
	'notice, then long execution: none of it is a wait');

# Debug messages come from everywhere, also from between requests.
gain(
	'messages of all levels',
	{qw(requests 12  statements 12  transactions 11  round_trips 12)},
	sub {
		$_[0]->run(
			'SET client_min_messages = debug5',
			('SELECT 1') x 8,
			'BEGIN', 'COMMIT', 'RESET client_min_messages');
	});

gain(
	'notifications to itself',
	{ requests => 6, statements => 6, transactions => 6, round_trips => 6 },
	sub { $_[0]->run('LISTEN here', ('NOTIFY here') x 4, 'UNLISTEN here') });

gain(
	'parameters that are reported',
	{ requests => 4, statements => 4 },
	sub {
		$_[0]->run(
			q{SET DateStyle = 'German'},
			q{SET TimeZone = 'UTC'},
			q{SET application_name = 'other'},
			'RESET ALL');
	});

gain(
	'COPY that fails half-way',
	{ requests => 2, statements => 1 },
	sub {
		my ($client) = @_;
		$client->put(
			query('COPY items (id) FROM STDIN'),
			copy_data("no number\n") x 5000,
			copy_done());
		$client->until('Z');
		$client->run('SELECT 1');
	});

# The kernel has taken the first part long before the second is computed.
$gain = gain(
	'rows that come slowly',
	{ requests => 1, statements => 1 },
	sub {
		$_[0]->run(
			q{SELECT repeat('x', 20000), pg_sleep(0.1) FROM generate_series(1, 5)}
		);
	});
at_least($gain->{exec_time}, 500,
	'rows that come slowly: computing them is execution');

no_violations($observer);
$node->stop;
done_testing();
