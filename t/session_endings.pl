
# Copyright (c) 2026, the pgnetlat authors

# However a session ends, pgnetlat_clients keeps what it did.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) =
  start_node('endings', conf => "pgnetlat.idle_threshold = '1h'\n");

# Starts a session, has "prepare" bring it to where it is to end, and "end" end
# it.  Returns its account before the end, and the sums of its group.
sub end_of
{
	my ($name, $prepare, $end, %options) = @_;
	my $client = PgNetlat::Client->connect(
		$node,
		application_name => $name,
		%options);
	my $last = $prepare->($client);

	ok($last, "$name: the session is where it is to end");
	$end->($client);
	my $sum = $observer->ended($name);
	ok($sum, "$name: the session has ended");
	return {} unless $sum;

	is($sum->{sessions}, 0, "$name: the group has no live session");
	is($sum->{ended_sessions}, 1, "$name: the group has one ended session");
	foreach (@PgNetlat::Observer::GROWING)
	{
		# what was in progress may have turned out to be something else
		my $step_back = /_time$/ && $_ ne 'total_time' ? 50 : 0;

		cmp_ok(
			$sum->{$_}, '>=',
			$last->{$_} - $step_back,
			"$name: $_ is not less than in its life") if defined $last->{$_};
	}
	is($sum->{pending_time}, 0, "$name: nothing is pending");
	return $sum;
}

# Runs one statement and waits for so many milliseconds.
sub wait_after_statement
{
	my ($milliseconds) = @_;

	return sub {
		my ($client) = @_;
		$client->run('SELECT 1');
		my $account = $observer->settled($client);
		pause($milliseconds);
		return $account;
	};
}

sub execute_for_long
{
	my ($client) = @_;

	$client->put(query('SELECT pg_sleep(600)'));
	return $observer->await($client->pid,
		sub { $_->{state} eq 'executing' and $_->{exec_time} >= 300 });
}

sub send_for_long
{
	my ($client) = @_;

	$client->put(
		query(q{SELECT repeat('x', 10000) FROM generate_series(1, 5000)}));
	return $observer->await($client->pid,
		sub { $_->{state} eq 'sending' and $_->{send_time} >= 300 });
}

sub terminate_backend
{
	my ($client) = @_;

	is( $observer->value('SELECT pg_terminate_backend(' . $client->pid . ')'),
		't',
		'pg_terminate_backend() succeeds');
	return;
}

# ---------------------------------------------------------------------------
# The client ends it
# ---------------------------------------------------------------------------

my $sum = end_of('leaves', wait_after_statement(300), sub { $_[0]->finish });
is($sum->{requests}, 1, 'leaves: Terminate is not a request');
is($sum->{statements}, 1, 'leaves: Terminate is not a statement');
at_least($sum->{client_time}, 300, 'leaves: the last wait is kept');

$sum = end_of('vanishes', wait_after_statement(300), sub { $_[0]->vanish });
is($sum->{requests}, 1, 'vanishes: closing the socket is not a request');
at_least($sum->{client_time}, 300, 'vanishes: the last wait is kept');

$sum = end_of(
	'never speaks',
	sub { pause(300); return $observer->account($_[0]->pid) },
	sub { $_[0]->finish });
is($sum->{requests}, 0, 'never speaks: no request is counted');
at_least($sum->{client_time}, 300, 'never speaks: its wait is kept');

$sum = end_of(
	'vanishes in a transaction',
	sub {
		my ($client) = @_;
		$client->run('BEGIN');
		return $observer->await($client->pid,
			sub { $_->{in_xact_wait_time} >= 300 });
	},
	sub { $_[0]->vanish });
cmp_ok($sum->{in_xact_wait_time},
	'>=', 300, 'vanishes in a transaction: the wait stays client time');

end_of(
	'vanishes in COPY',
	sub {
		my ($client) = @_;
		$client->run('CREATE TEMP TABLE lines (line text)');
		$client->put(query('COPY lines FROM STDIN'));
		return $observer->await($client->pid,
			sub { $_->{state} eq 'receiving' and $_->{recv_time} >= 300 });
	},
	sub { $_[0]->vanish });

# what the socket does not take has not been sent
foreach my $tcp (0, 1)
{
	my $name = 'vanishes before the response' . ($tcp ? ' over TCP' : '');
	my $before;

	$sum = end_of(
		$name,
		sub {
			my ($client) = @_;
			$client->run('SELECT 1');
			$before = $observer->settled($client);
			$client->put(query(q{SELECT pg_sleep(2)}));
			return $observer->await($client->pid,
				sub { $_->{state} eq 'executing' });
		},
		sub { $tcp ? $_[0]->reset : $_[0]->vanish },
		tcp => $tcp);
	is($sum->{bytes_sent}, $before->{bytes_sent},
		"$name: it is not counted as sent");
}

$sum = end_of(
	'vanishes in half a message',
	sub {
		my ($client) = @_;
		$client->put(substr(query('SELECT 1'), 0, 9));
		pause(300);
		return $observer->account($client->pid);
	},
	sub { $_[0]->vanish });
at_least($sum->{client_time}, 300,
	'vanishes in half a message: the last wait is kept');

$sum = end_of(
	'breaks the protocol',
	wait_after_statement(300),
	sub {
		$_[0]->put('?' . pack('N', 4));
		$_[0]->until_closed;
	});
at_least($sum->{client_time}, 300,
	'breaks the protocol: the last wait is kept');

# ---------------------------------------------------------------------------
# Another session ends it
# ---------------------------------------------------------------------------

$sum = end_of(
	'terminated while waiting',
	wait_after_statement(300),
	sub {
		my ($client) = @_;
		terminate_backend($client);
		my ($error) = grep { $_->{type} eq 'E' } $client->until_closed;
		is($error->{error}{C},
			'57P01', 'terminated while waiting: the client gets the error');
	});
is($sum->{requests}, 1, 'terminated while waiting: the end is not a request');
at_least($sum->{client_time}, 300,
	'terminated while waiting: the wait is kept');

$sum = end_of(
	'terminated while executing',
	\&execute_for_long,
	sub {
		my ($client) = @_;
		terminate_backend($client);
		$client->until_closed;
	});
is($sum->{requests}, 1,
	'terminated while executing: the request was answered with an error');
cmp_ok($sum->{exec_time}, '>=', 300,
	'terminated while executing: the execution is kept');

foreach my $tcp (0, 1)
{
	my $name = 'terminated while sending' . ($tcp ? ' over TCP' : '');

	$sum = end_of(
		$name,
		\&send_for_long,
		sub {
			my ($client) = @_;
			terminate_backend($client);
			$client->until_closed;
		},
		tcp => $tcp,
		receive_buffer => 65536);
	cmp_ok($sum->{send_time}, '>=', 300, "$name: the sending is kept");
}

# ---------------------------------------------------------------------------
# The server ends it
# ---------------------------------------------------------------------------

$sum = end_of(
	'idle session',
	sub {
		my ($client) = @_;
		$client->run(q{SET idle_session_timeout = '400ms'});
		return $observer->account($client->pid);
	},
	sub {
		my ($error) = grep { $_->{type} eq 'E' } $_[0]->until_closed;
		is($error->{error}{C},
			'57P05', 'idle session: the client gets the error');
	});
is($sum->{requests}, 1, 'idle session: a timeout is not a request');
at_least($sum->{client_time}, 400, 'idle session: the wait is kept');

$sum = end_of(
	'idle in transaction',
	sub {
		my ($client) = @_;
		$client->run(q{SET idle_in_transaction_session_timeout = '400ms'},
			'BEGIN');
		return $observer->account($client->pid);
	},
	sub {
		my ($error) = grep { $_->{type} eq 'E' } $_[0]->until_closed;
		is($error->{error}{C},
			'25P03', 'idle in transaction: the client gets the error');
	});
is($sum->{requests}, 2, 'idle in transaction: a timeout is not a request');
at_least($sum->{in_xact_wait_time},
	400, 'idle in transaction: the wait stays client time');

# long enough waits are idle in the end as well
my $client = PgNetlat::Client->connect(
	$node,
	application_name => 'idle to the end',
	options => '-c pgnetlat.idle_threshold=100ms');
$client->run('SELECT 1');
ok($observer->await($client->pid, sub { $_->{idle_time} >= 300 }),
	'idle to the end: the wait gets idle');
$client->finish;
$sum = $observer->ended('idle to the end');
cmp_ok($sum->{idle_time}, '>=', 300, 'idle to the end: the wait is idle');

# a statement's timeout does not end the session, but the exchange
$client = PgNetlat::Client->connect($node);
$client->run(q{SET statement_timeout = '300ms'});
is( $client->error_of('SELECT pg_sleep(600)'),
	'canceling statement due to statement timeout',
	'a timeout cancels the statement');
my $account = $observer->settled($client);
is($account->{requests}, $client->responded, 'a timeout ends the exchange');
at_least($account->{exec_time}, 300,
	"a timeout: the statement's time is execution");
$client->finish;

# ---------------------------------------------------------------------------
# Its group's total_time does not fall when a session ends, however closely one looks
# ---------------------------------------------------------------------------

$observer->run(<<'EOC');
CREATE FUNCTION times_fallen(duration interval) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	ends timestamptz := clock_timestamp() + duration;
	before float := 0;
	total float;
	fallen bigint := 0;
BEGIN
	WHILE clock_timestamp() < ends LOOP
		SELECT total_time INTO total FROM pgnetlat_clients WHERE application_name = 'brief';
		IF total < before - 1e-6 THEN
			fallen := fallen + 1;
		END IF;
		before := coalesce(total, 0);
	END LOOP;
	RETURN fallen;
END $$
EOC
my $watcher = PgNetlat::Client->connect($node, application_name => 'watcher');
$watcher->put(query(q{CREATE TABLE fallen AS SELECT times_fallen('3 s')}));
my $until = now() + 2900;
while (now() < $until)
{
	my $brief = PgNetlat::Client->connect(
		$node,
		tcp => 1,
		application_name => 'brief');
	$brief->run('SELECT 1');
	$brief->finish;
}
$watcher->responses;
is($observer->value('SELECT * FROM fallen'),
	0, 'total_time of a group does not fall when its sessions end');
$watcher->finish;

# ---------------------------------------------------------------------------
# In a transaction
# ---------------------------------------------------------------------------

# Temporary tables are dropped when the session ends, after its transaction has
# been aborted, and in one that does not count.
foreach my $end (
	[ 'leaves', sub { $_[0]->finish } ],
	[ 'vanishes', sub { $_[0]->vanish } ],
	[ 'terminated', \&terminate_backend ])
{
	foreach my $first (
		'CREATE TABLE IF NOT EXISTS kept ()',
		'CREATE TEMP TABLE dropped ()')
	{
		my $name =
		  $first =~ /TEMP/ ? "$end->[0], temporary" : "$end->[0], kept";

		$sum = end_of(
			$name,
			sub {
				my ($client) = @_;
				$client->run($first, 'BEGIN', 'SELECT 1');
				return $observer->settled($client);
			},
			$end->[1]);
		is($sum->{transactions}, 2,
			"$name: the transaction in progress is counted once");
	}
}

# ---------------------------------------------------------------------------
# What the statements of ended sessions waited for
# ---------------------------------------------------------------------------

# Has the statement of this role spent most of its execution waiting for locks?
sub waited_for_lock
{
	my ($role, $calls) = @_;

	return $observer->poll(
		sub {
			$observer->value(
				"SELECT coalesce(sum(calls), 0) = $calls
				    AND sum(exec_time) >= 300 * $calls
				    AND sum(exec_lock_time) >= 0.7 * sum(exec_time)
				   FROM pgnetlat_statements
				  WHERE userid = '$role'::regrole AND queryid IS NOT NULL"
			) eq 't';
		});
}

# Has a client's only statement, or its next one, wait for a lock while it is
# analyzed.
sub wait_in_analysis
{
	my ($client, $holder) = @_;

	$holder->run('BEGIN', 'LOCK locked');
	$client->put(query('TABLE locked'));
	pause(400);
	$holder->run('COMMIT');
	$client->responses;
	return;
}

$observer->run(
	'CREATE TABLE locked ()',
	'CREATE ROLE once LOGIN',
	'CREATE ROLE anew LOGIN',
	'CREATE ROLE sleeper LOGIN',
	'GRANT SELECT ON locked TO once, anew');
my $holder = PgNetlat::Client->connect($node, application_name => 'holder');
foreach (1 .. 3)
{
	my $client = PgNetlat::Client->connect($node, user => 'once');
	wait_in_analysis($client, $holder);
	$client->finish;
}
ok(waited_for_lock('once', 3),
	'a connection for each statement: their waits for locks are known');

my $anew = PgNetlat::Client->connect($node, user => 'anew');
$anew->run('SELECT 1');
$observer->settled($anew);
$observer->run('SELECT pgnetlat_reset()');
wait_in_analysis($anew, $holder);
ok(waited_for_lock('anew', 1),
	'the first statement after a reset: its wait for a lock is known');
$_->finish foreach $anew, $holder;

foreach (1 .. 3)
{
	my $client = PgNetlat::Client->connect($node, user => 'sleeper');
	$client->run('SELECT pg_sleep(0.4)');
	$client->finish;
}
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT coalesce(sum(calls), 0) = 3
				     AND sum(exec_other_time) >= 0.7 * sum(exec_time)
				    FROM pgnetlat_statements
				   WHERE userid = 'sleeper'::regrole AND queryid IS NOT NULL}
			) eq 't';
		}),
	'a connection for each statement: their other waits are known');

# ---------------------------------------------------------------------------
# A session that core ends because it has no place left for our callback
# ---------------------------------------------------------------------------

SKIP:
{
	my $library = backend_library()
	  or skip('there is no compiler, or no server headers', 2);
	my $refused = 0;

	foreach my $callbacks (1 .. 20)
	{
		my $client = eval {
			PgNetlat::Client->connect($node,
				options =>
				  "-c backend.exit_callbacks=$callbacks -c session_preload_libraries=$library,pgnetlat"
			);
		} or last;
		my $error = eval { $client->error_of('SELECT 1') }
		  // 'the connection is closed';
		$refused++ if $error ne '';
		$client->finish if $error eq '';
	}
	cmp_ok($refused, '>', 0, 'a session is refused a place for a callback');
	ok( $observer->poll(
			sub {
				$observer->value(
					'SELECT count(*) FROM pgnetlat_sessions WHERE pid NOT IN'
					  . ' (SELECT pid FROM pg_stat_activity)') == 0;
			}),
		'it leaves no row');
}

no_violations($observer);
$node->stop;
done_testing();
