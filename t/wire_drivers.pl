
# Copyright (c) 2026, the pgnetlat authors

# The messages that mainstream drivers send: Flush after Sync, portals read in
# parts, portals closed after their statement, statements prepared anew each
# time, COPY.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# The sampler sleeps: what is expected here must not depend on it.
my ($node, $observer) = start_node('drivers', conf => <<'EOC');
pgnetlat.idle_threshold = '1h'
pgnetlat.sample_interval = '10s'
EOC
$observer->run(
	'CREATE TABLE items (id int, note text)',
	q{CREATE FUNCTION loops() RETURNS int LANGUAGE plpgsql AS
	  'DECLARE i int; n int := 0;
	   BEGIN FOR i IN SELECT generate_series(1, 500) LOOP n := n + 1; END LOOP; RETURN n; END'}
);

# Runs a function on a fresh session and returns what its account gained, once
# it has answered as many requests as expected, and what its statements did.
# Checks the counts of both: calls, rows and repeats of the statement that was
# run most.
sub gain
{
	my ($name, $expected, $function, %options) = @_;
	my $client = PgNetlat::Client->connect(
		$node,
		application_name => 'subject',
		%options);
	$client->run(@{ $options{before} }) if $options{before};
	$observer->settled($client);
	$observer->run('SELECT pgnetlat_reset()');
	my $before = $observer->account($client->pid);
	$function->($client);
	my $gain =
	  delta($before, $observer->settled($client, $expected->{requests}));
	$client->finish;
	$observer->ended('subject');
	my @rows = $observer->rows(
		'SELECT * FROM pgnetlat_statements ORDER BY calls DESC, rows DESC');
	my %most = map { $_ => $rows[0]{$_} } qw(calls rows repeats);

	foreach (sort keys %$expected)
	{
		is(exists $most{$_} ? $most{$_} : $gain->{$_},
			$expected->{$_}, "$name: $_ is correct");
	}
	$gain->{statement} = $rows[0];
	($gain->{none}) = grep { !defined $_->{queryid} } @rows;
	$gain->{known} = grep { defined $_->{queryid} } @rows;
	return $gain;
}

my $seven = 'SELECT g AS seven FROM generate_series(1, 7) g';

# ---------------------------------------------------------------------------
# What has arrived, and is no request
# ---------------------------------------------------------------------------

foreach my $tcp (0, 1)
{
	my $over = $tcp ? ', TCP' : '';

	# psycopg 3 ends each of its pipelines so
	gain(
		"Flush behind Sync$over",
		{qw(requests 20  pipelined 0  round_trips 20  statements 20)},
		sub {
			my ($client) = @_;
			for (1 .. 20)
			{
				$client->put(extended('SELECT 1'), sync(), flush());
				$client->responses;
			}
		},
		tcp => $tcp);

	# long enough for the kernel to be asked
	gain(
		"Flush behind Sync after a longer statement$over",
		{ requests => 5, pipelined => 0, round_trips => 5 },
		sub {
			my ($client) = @_;
			for (1 .. 5)
			{
				$client->put(extended('SELECT pg_sleep(0.02)'));
				pause(5);
				$client->put(sync(), flush());
				$client->responses;
			}
		},
		tcp => $tcp);

	gain(
		"Flush behind each Sync of a pipeline$over",
		{ requests => 12, pipelined => 10, round_trips => 2 },
		sub {
			my ($client) = @_;
			for (1 .. 2)
			{
				$client->put((extended('SELECT 1') . sync() . flush()) x 6);
				$client->responses(6);
			}
		},
		tcp => $tcp);

	gain(
		"part of the next message sent with a request$over",
		{ requests => 6, pipelined => 0, round_trips => 6 },
		sub {
			my ($client) = @_;
			for (1 .. 3)
			{
				my $next =
				  query('SELECT 2 /* not all of this comes at once */');

				$client->put(
					query('SELECT pg_sleep(0.02)') . substr($next, 0, 20));
				$client->responses;
				pause(50);
				$client->put(substr($next, 20));
				$client->responses;
			}
		},
		tcp => $tcp);

	# the client notices only when all has been sent
	gain(
		"COPY that fails$over",
		{ requests => 6, pipelined => 0, round_trips => 6 },
		sub {
			my ($client) = @_;
			for (1 .. 3)
			{
				$client->put(
					query('COPY items (id) FROM STDIN'),
					copy_data("no number\n") x 3000,
					copy_done());
				$client->until('Z');
				$client->run('SELECT 1');
			}
		},
		tcp => $tcp);

	gain(
		"COPY that fails, client waits for CopyInResponse$over",
		{ requests => 4, pipelined => 0, round_trips => 6 },
		sub {
			my ($client) = @_;
			for (1 .. 2)
			{
				$client->put(query('COPY items (id) FROM STDIN'));
				$client->until('G');
				$observer->await($client->pid,
					sub { $_->{state} eq 'receiving' });
				$client->put(copy_data("no number\n") x 3000, copy_done());
				$client->until('Z');
				$client->run('SELECT 1');
			}
		},
		tcp => $tcp);
}

# tokio-postgres closes the statement behind its data: that is a request
gain(
	'COPY that fails, with a request behind it',
	{ requests => 9, pipelined => 3, round_trips => 9 },
	sub {
		my ($client) = @_;
		for (1 .. 3)
		{
			$client->put(
				parse('s', 'COPY items (id) FROM STDIN'),
				bind_('', 's'),
				execute(''), sync());
			$client->until('G');
			$client->put(copy_data("no number\n"),
				copy_done(), sync(), close_('S', 's'), sync());
			$client->until('Z') for 1 .. 2;
			$client->run('SELECT 1');
		}
	});

# ---------------------------------------------------------------------------
# Portals that are not read to their end
# ---------------------------------------------------------------------------

# asyncpg's fetchrow() and fetchval(), JDBC's setMaxRows()
gain(
	'portal limited to one row',
	{qw(requests 23  statements 22  calls 20  rows 20  repeats 19)},
	sub {
		my ($client) = @_;
		$client->put(parse('s', $seven), sync());
		$client->responses;
		$client->run('BEGIN');
		for (1 .. 20)
		{
			$client->put(bind_('', 's'), execute('', 1), sync());
			$client->responses;
		}
		$client->run('COMMIT');
	});

gain(
	'portals limited to one row, under one Sync',
	{qw(requests 1  statements 10  calls 10  rows 10  repeats 9)},
	sub {
		my ($client) = @_;
		$client->put(
			(parse('', $seven) . bind_('', '') . execute('', 1)) x 10,
			sync());
		$client->responses;
	});

# a portal is one statement, however often it is read from
my %portals = (
	'portal read in parts' => [ $seven, 7 ],
	'portal of a statement that writes, read in parts' => [
		'INSERT INTO items SELECT generate_series(1, 7) RETURNING id', undef
	],
	'portal of a utility statement, read in parts' =>
	  [ 'EXPLAIN ' . $seven, undef ],
	'portal of nested loops, read in parts' =>
	  [ 'SELECT loops() FROM generate_series(1, 7)', 7 ]);
foreach my $name (sort keys %portals)
{
	my ($sql, $rows) = @{ $portals{$name} };

	foreach my $under_one_sync (0, 1)
	{
		gain(
			$name . ($under_one_sync ? ', under one Sync' : ''),
			{
				qw(statements 4  transactions 1),
				requests => $under_one_sync ? 3 : 10,
				$rows ? (rows => $rows) : ()
			},
			sub {
				my ($client) = @_;
				my @messages = (
					parse('', $sql) . bind_('p', ''),
					(execute('p', 1)) x 3,

					# another one in between, with loops of its own
					extended('SELECT loops()'),
					(execute('p', 1)) x 2,
					execute('p'));

				$client->run('BEGIN');
				if ($under_one_sync)
				{
					$client->put(@messages, sync());
					$client->responses;
				}
				else
				{
					foreach (@messages)
					{
						$client->put($_, sync());
						$client->responses;
					}
				}
				$client->run('COMMIT');
			},
			options => $under_one_sync
			? ''
			: '-c pgnetlat.track_statements=on');
	}
}

# the same where nobody keeps track of nesting
gain(
	'portals with track_statements off',
	{ requests => 8, statements => 6, transactions => 2 },
	sub {
		my ($client) = @_;
		for (1 .. 2)
		{
			$client->run('BEGIN');
			$client->put(
				parse('', $seven),
				bind_('p', ''),
				execute('p', 3), sync());
			$client->responses;
			$client->put(execute('p', 3), sync());
			$client->responses;
			$client->run('COMMIT');
		}
	},
	options => '-c pgnetlat.track_statements=off');

# ---------------------------------------------------------------------------
# The statement that a wait belongs to
# ---------------------------------------------------------------------------

# In a transaction block, where a client may think for as long as it likes and
# still repeats a statement.

# sqlx closes the portal; the pauses are after the statement
my $paused = 0;
my $gain = gain(
	'portal closed behind its statement',
	{qw(requests 13  statements 12  calls 10  rows 70  repeats 9)},
	sub {
		my ($client) = @_;
		$client->put(parse('s', $seven), describe('S', 's'), sync());
		$client->responses;
		$client->run('BEGIN');
		for (1 .. 10)
		{
			$client->put(bind_('', 's'), execute(''), close_('P', ''),
				sync());
			$client->responses;
			$paused += pause(5);
		}
		$client->run('COMMIT');
	});
at_least(
	$gain->{statement}{client_time},
	$paused / 2,
	'portal closed behind its statement: its waits include the pauses');

# lib/pq, tokio-postgres, pgx: prepare, wait, execute
$paused = 0;
$gain = gain(
	'statement prepared anew each time',
	{qw(requests 22  statements 12  calls 10  rows 70  repeats 9)},
	sub {
		my ($client) = @_;
		$client->run('BEGIN');
		for (1 .. 10)
		{
			$client->put(parse('', $seven), describe('S', ''), sync());
			$client->responses;
			$paused += pause(5);
			$client->put(bind_('', ''), execute(''), sync());
			$client->responses;
			$paused += pause(2);
		}
		$client->run('COMMIT');
	},
	tcp => 1);
at_least(
	$gain->{statement}{client_time} + $gain->{statement}{network_time},
	$paused / 2,
	'statement prepared anew each time: its waits include the pauses');
SKIP:
{
	skip 'this kernel reports no round trip', 1
	  unless $gain->{network_time} > 0;

	# nine times two round trips could be saved, each after this statement
	cmp_ok(
		abs($gain->{statement}{repeat_network_time} /
			  $gain->{statement}{network_time} - 18 / 20),
		'<', 0.05,
		'statement prepared anew each time: a repeat saves two round trips');
}

# An error while a statement is planned is no call, but about that statement.
$paused = 0;
$gain = gain(
	'statement that fails in planning',
	{ requests => 5, statements => 0 },
	sub {
		my ($client) = @_;
		$client->put(parse('s', 'SELECT 1 / $1::int'), sync());
		$client->responses;
		for (1 .. 4)
		{
			$client->put(bind_('', 's', '0'), execute(''), sync());
			$client->until('Z');
			$paused += pause(5);
		}
	});
at_least(
	$gain->{statement}{client_time},
	$paused / 2,
	'statement that fails in planning: its waits include the pauses');
ok(defined $gain->{statement}{queryid},
	'statement that fails in planning: its queryid is known');

# What runs before the statement does, while its parameter is bound, is not it.
$observer->run(
	q{CREATE FUNCTION is_small(n int) RETURNS boolean LANGUAGE plpgsql AS
	  'BEGIN PERFORM FROM generate_series(1, 3); SET LOCAL work_mem = 1024; RETURN n < 10; END'},
	'CREATE DOMAIN small AS int CHECK (is_small(VALUE))');
$gain = gain(
	'domain with a CHECK that runs queries',
	{ requests => 2, statements => 2, calls => 2, rows => 14 },
	sub {
		my ($client) = @_;
		for (1 .. 2)
		{
			$client->put(
				extended(
					'SELECT $1::small, g FROM generate_series(1, 7) g', '5'),
				sync());
			$client->responses;
		}
	});
is($gain->{known}, 1,
	'domain with a CHECK that runs queries: no other statement is listed');
is($gain->{none}, undef,
	'domain with a CHECK that runs queries: none is without queryid');

# What a commit runs belongs to the statement whose Sync that is; where the
# statement has been answered before, to none.
$observer->run(
	'CREATE TABLE parents (id int PRIMARY KEY)',
	'CREATE TABLE children (parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED)',
	'INSERT INTO parents VALUES (1)');
foreach my $answered (0, 1)
{
	my $name =
	  'deferred constraints' . ($answered ? ', Flush before Sync' : '');

	$paused = 0;
	$gain = gain(
		$name,
		{
			requests => $answered ? 8 : 4,
			qw(statements 4  calls 4  rows 4)
		},
		sub {
			my ($client) = @_;
			for (1 .. 4)
			{
				$client->put(extended('INSERT INTO children VALUES (1)'));
				if ($answered)
				{
					$client->put(flush());
					$client->until('C');
				}
				else
				{
					$client->put(sync());
					$client->responses;
				}
				$paused += pause(20);
				next unless $answered;
				$client->put(sync());
				$client->responses;
			}
		});
	at_least(
		$gain->{statement}{client_time},
		$paused / 2,
		"$name: the statement's waits include the pauses");
	is(($gain->{none}{calls} // 0) + ($gain->{none}{rows} // 0),
		0, "$name: no call or row is without queryid");
	is($gain->{known}, 1, "$name: no other statement is listed");
}

$gain = gain(
	'cursor WITH HOLD under Sync',
	{ requests => 1, statements => 1, calls => 1, rows => 0 },
	sub {
		my ($client) = @_;
		$client->put(extended("DECLARE held CURSOR WITH HOLD FOR $seven"),
			sync());
		$client->responses;
	});
is($gain->{none}, undef,
	'cursor WITH HOLD under Sync: no row is without queryid');

# ---------------------------------------------------------------------------
# Loops of many different statements
# ---------------------------------------------------------------------------

# as many as a tally has places, with BEGIN, and more
foreach my $different (17, 31, 200)
{
	my $rounds = 3;

	gain(
		"loop of $different statements",
		{ requests => $different * $rounds + 2 },
		sub {
			my ($client) = @_;
			$client->run(
				'BEGIN',
				(map { 'SELECT ' . join(', ', (1) x $_) } 1 .. $different) x
				  $rounds,
				'COMMIT');
		});
	my $repeats = $different < 200 ? $rounds - 1 : 0;
	is( $observer->value(
			"SELECT count(*) FROM pgnetlat_statements WHERE calls = $rounds AND repeats = $repeats"
		),
		$different,
		"loop of $different statements: all or none have repeats");
}

# ---------------------------------------------------------------------------
# COPY from the client
# ---------------------------------------------------------------------------

foreach my $tcp (0, 1)
{
	my $over = $tcp ? ', TCP' : '';

	my @in_progress;
	$gain = gain(
		"COPY, client waits for CopyInResponse$over",
		{
			qw(requests 4  statements 4  pipelined 0  round_trips 8  transactions 4  calls 4  rows 8)
		},
		sub {
			my ($client) = @_;
			for (1 .. 4)
			{
				$client->put(query('COPY items (id) FROM STDIN'));
				$client->until('G');
				push @in_progress,
				  $observer->await($client->pid,
					sub { $_->{state} eq 'receiving' });
				pause(50);
				push @in_progress, $observer->account($client->pid);
				$client->put(copy_data("1\n2\n"), copy_done());
				$client->responses;
			}
		},
		tcp => $tcp);
	is( scalar(
			grep { $_->{state} eq 'receiving' and $_->{pending_time} == 0 }
			  @in_progress),
		8,
		"COPY$over: the first wait is seen while it lasts");

	gain(
		"COPY, client sends data at once$over",
		{qw(requests 4  statements 4  pipelined 0  round_trips 4  calls 4)},
		sub {
			my ($client) = @_;
			for (1 .. 4)
			{
				$client->put(query('COPY items (id) FROM STDIN'),
					copy_data("1\n2\n"), copy_done());
				$client->responses;
			}
		},
		tcp => $tcp);

	# the rest of the data comes while the transaction is being aborted
	gain(
		"COPY that fails slowly$over",
		{ requests => 20, pipelined => 0, round_trips => 25 },
		sub {
			my ($client) = @_;
			for (1 .. 5)
			{
				$client->run('BEGIN',
					q{DO $$BEGIN FOR i IN 1..100 LOOP EXECUTE 'CREATE TABLE fleeting' || i || '()'; END LOOP; END$$}
				);
				$client->put(query('COPY items (id) FROM STDIN'));
				$client->until('G');
				pause(10);
				$client->put(copy_data("no number\n"));
				$client->put(copy_data("1\n")) for 1 .. 400;
				$client->put(copy_done());
				$client->until('Z');
				$client->run('ROLLBACK');
			}
		},
		tcp => $tcp);

	gain(
		"COPY that the client aborts late$over",
		{ requests => 1, statements => 0, round_trips => 2 },
		sub {
			my ($client) = @_;
			$client->put(query('COPY items (id) FROM STDIN'));
			$client->until('G');
			pause(1300);
			$client->put(copy_fail('changed my mind'));
			$client->until('Z');
		},
		tcp => $tcp);

	# what the extended protocol sends behind its Execute is skipped
	my %behind = (
		'Sync' => sync(),
		'Flush' => flush(),
		'Flush and Sync' => flush() . sync(),
		'Sync and Flush' => sync() . flush());
	foreach my $messages (sort keys %behind)
	{
		gain(
			"COPY in the extended protocol, $messages behind it$over",
			{
				qw(requests 3  statements 3  pipelined 0  round_trips 6  calls 3)
			},
			sub {
				my ($client) = @_;
				for (1 .. 3)
				{
					$client->put(extended('COPY items (id) FROM STDIN'),
						$behind{$messages});
					$client->until('G');
					$observer->await($client->pid,
						sub { $_->{state} eq 'receiving' });
					$client->put(copy_data("1\n2\n"), copy_done(), sync());
					$client->responses;
				}
			},
			tcp => $tcp);
	}
}

# Timers go off meanwhile.
SKIP:
{
	skip 'the server cannot check connections here', 4
	  if $observer->error_of('SET client_connection_check_interval = 3');
	$observer->run('RESET client_connection_check_interval');
	gain(
		'COPY while timers go off',
		{ requests => 3, statements => 3, round_trips => 6, calls => 3 },
		sub {
			my ($client) = @_;
			for (1 .. 3)
			{
				$client->put(query('COPY items (id) FROM STDIN'));
				$client->until('G');
				pause(50);
				$client->put(copy_data("1\n2\n"), copy_done());
				$client->responses;
			}
		},
		options => '-c client_connection_check_interval=3');
}

# The server may have something to say before it reads, which must not wait for
# a client that has nothing to send yet.
$observer->run(
	'CREATE VIEW shown AS SELECT * FROM items',
	'CREATE TABLE refused (id int)',
	q{CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS
	  'BEGIN PERFORM pg_sleep(0.05); RAISE EXCEPTION ''not today''; END'},
	'CREATE TRIGGER refuses BEFORE INSERT ON refused EXECUTE FUNCTION refuses()'
);
foreach my $table ('shown', 'refused')
{
	my $client = PgNetlat::Client->connect($node, tcp => 1);

	$observer->settled($client);
	$client->put(query("COPY $table (id) FROM STDIN"));
	$client->until('G');
	like(
		($client->until('E'))[-1]{body},
		qr/cannot copy to view|not today/,
		"COPY to $table: the error comes without data");
	$client->until('Z');
	my $account = $observer->settled($client);
	is($account->{round_trips},
		1, "COPY to $table: no answer to CopyInResponse was waited for");
	$client->finish;
}

# A session that is terminated while it waits for data, or whose client goes.
foreach my $how ('terminated', 'gone')
{
	my $client = PgNetlat::Client->connect(
		$node,
		application_name => "copy $how",
		tcp => 1);

	$client->put(query('COPY items (id) FROM STDIN'));
	$client->until('G');
	ok($observer->await($client->pid, sub { $_->{state} eq 'receiving' }),
		"COPY, client $how: the session is receiving");
	if ($how eq 'terminated')
	{
		$observer->run('SELECT pg_terminate_backend(' . $client->pid . ')');
		$client->until_closed;
	}
	else
	{
		$client->vanish;
	}
	my $sum = $observer->ended("copy $how");
	is($sum->{requests}, 1, "COPY, client $how: one request is counted");

	# the end of a connection looks like an answer in the first second
	like(
		$sum->{round_trips},
		$how eq 'gone' ? qr/^[12]$/ : qr/^1$/,
		"COPY, client $how: round trips are those the client answered");
	is($sum->{transactions}, 1,
		"COPY, client $how: one transaction is counted");
}

# A client that goes instead of sending Sync after an error.
{
	my $client =
	  PgNetlat::Client->connect($node,
		application_name => 'gone after error');

	$client->put(parse('', 'SELEC'), flush());
	$client->until('E');
	ok($observer->await($client->pid, sub { $_->{state} eq 'receiving' }),
		'error, client gone: the session is receiving');
	$client->finish;
	my $sum = $observer->ended('gone after error');
	is($sum->{requests}, 1, 'error, client gone: one request is counted');
	is($sum->{round_trips}, 1,
		'error, client gone: Sync was waited for in vain');
}

# ---------------------------------------------------------------------------
# Transactions that end with the session
# ---------------------------------------------------------------------------

foreach my $how ('leaves', 'vanishes', 'is terminated')
{
	my $client =
	  PgNetlat::Client->connect($node, application_name => "client $how");

	$client->run('CREATE TEMPORARY TABLE temporary (id int)',
		'BEGIN', 'SELECT 1');
	$client->finish if $how eq 'leaves';
	$client->vanish if $how eq 'vanishes';
	$observer->run('SELECT pg_terminate_backend(' . $client->pid . ')')
	  if $how eq 'is terminated';
	is($observer->ended("client $how")->{transactions},
		2, "the transaction of a client that $how is counted");
}

no_violations($observer);
$node->stop;
done_testing();
