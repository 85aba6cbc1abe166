
# Copyright (c) 2026, the pgnetlat authors

# Waits and execution in progress: their states, that they count up to now, and
# when a wait becomes idle.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('waits');
$observer->run('CREATE TABLE items (id int PRIMARY KEY, note text)',
	'INSERT INTO items VALUES (1)');

my $account;
my $gain;

# ---------------------------------------------------------------------------
# Outside a transaction: pending until it is over, or clearly idle
# ---------------------------------------------------------------------------

my $client = PgNetlat::Client->connect($node,
	options => '-c pgnetlat.idle_threshold=400ms');
$client->run('SELECT 1');
my $before = $observer->settled($client);
pause(200);
$client->run('SELECT 1');
$account = $observer->settled($client);
$gain = delta($before, $account);

if ($gain->{idle_time} == 0)
{
	at_least($gain->{client_time}, 200, 'a short wait is client time');
}
else
{
	# the machine made it a long one
	at_least($gain->{idle_time}, 400, 'a long wait is idle time');
}

$before = $observer->await(
	$client->pid,
	sub {
		$_->{state} eq 'waiting' and $_->{pending_time} > 0
		  or $_->{state} eq 'idle';
	});
ok($before, 'a wait in progress is pending');
is($before->{requests},
	$account->{requests}, 'a wait in progress is no request');
my $idle =
  $observer->await($client->pid, sub { $_->{state} eq 'idle' });
ok($idle, 'a wait becomes idle');
is($idle->{pending_time}, 0, 'an idle session has nothing pending');
cmp_ok($idle->{idle_time} - $account->{idle_time},
	'>', 400, 'all of an idle wait is idle time');
is( $idle->{client_time},
	$account->{client_time},
	'none of an idle wait is client time');
at_least(
	$observer->await($client->pid, sub { $_->{idle_time} > 700 })
	  ->{idle_time},
	700,
	'idle time grows while it lasts');
$client->run('SELECT 1');
$account = $observer->settled($client);
is($account->{client_time},
	$idle->{client_time}, 'idle time stays idle when it is over');

# the threshold far away: pending grows, and becomes the client's
$client->run(q{SET pgnetlat.idle_threshold = '1h'});
$account = $observer->await($client->pid, sub { $_->{pending_time} >= 300 });
ok($account, 'pending time grows up to the threshold');
is($account->{state}, 'waiting', 'a session below the threshold is waiting');
$client->run('SELECT 1');
$gain = delta($account, $observer->settled($client));
at_least(
	$gain->{client_time},
	$account->{pending_time},
	'pending time becomes client time');
cmp_ok($gain->{idle_time}, '==', 0, 'pending time becomes no idle time');

# ---------------------------------------------------------------------------
# In a transaction: never idle, and known at once
# ---------------------------------------------------------------------------

$client->run(q{SET pgnetlat.idle_threshold = '50ms'}, 'BEGIN');
$before = $observer->settled($client);
is( $before->{state},
	'waiting in transaction',
	'the state in a transaction is waiting in transaction');
$account = $observer->await($client->pid,
	sub { $_->{in_xact_wait_time} - $before->{in_xact_wait_time} >= 300 });
ok($account, 'a wait in a transaction counts up to now');
$gain = delta($before, $account);
is($gain->{idle_time}, 0, 'a wait in a transaction is never idle');
is($account->{pending_time}, 0, 'a wait in a transaction is not pending');
is( $account->{state},
	'waiting in transaction',
	'a wait in a transaction keeps its state');

# there is nothing to cancel in a wait
$client->cancel;
pause(50);
$client->run('COMMIT');
$gain = delta($account, $observer->settled($client));
cmp_ok($gain->{transactions}, '==', 1, 'the transaction is counted');

# ---------------------------------------------------------------------------
# Notifications are not requests, and a client that waits for one is not slow
# ---------------------------------------------------------------------------

$client->run(q{SET pgnetlat.idle_threshold = '600ms'}, 'LISTEN here');
$before = $observer->settled($client);
my $other = PgNetlat::Client->connect($node);
my $start = now();
for (1 .. 4)
{
	pause(250);
	$other->run('NOTIFY here');
	is($client->read_message->{type},
		'A', 'each of four notifications arrives');
}
my $paused = now() - $start;
$account = $observer->await($client->pid, sub { $_->{state} eq 'idle' });
is($account->{requests},
	$before->{requests}, 'notifications are no requests');
at_least($account->{idle_time} - $before->{idle_time},
	$paused, 'a client that waits for notifications is idle');
$client->run('UNLISTEN here');
$gain = delta($before, $observer->settled($client));
at_least($gain->{idle_time}, $paused,
	'the wait for notifications is idle from end to end');
is($gain->{requests}, 1, 'one request is counted after the notifications');

# after a notification, only the client's own pause counts
$client->run(q{SET pgnetlat.idle_threshold = '1h'}, 'LISTEN here');
$before = $observer->settled($client);
my $listened = pause(100);
$other->run('NOTIFY here');
is($client->read_message->{type},
	'A', 'a notification after a short wait arrives');
$paused = pause(200);
$client->run('SELECT 1');
$gain = delta($before, $observer->settled($client));
at_least($gain->{idle_time}, $listened,
	'a short wait for a notification is idle');
at_least($gain->{client_time}, $paused,
	'the pause after a notification is client time');
is($gain->{requests}, 1,
	'one request is counted after a short wait for a notification');
my ($recent) = $observer->rows(
	'SELECT * FROM pgnetlat_recent(' . $client->pid . ')
	  ORDER BY start DESC LIMIT 1');
at_least(
	$recent->{wait_time},
	$listened + $paused,
	'the flight recorder has both parts as one wait');
$client->finish;
$other->finish;

# ---------------------------------------------------------------------------
# Execution in progress
# ---------------------------------------------------------------------------

# Waits until a session has been seen executing for some time, ends that with
# a function, and checks that nothing of it is lost afterwards.
sub seen_executing
{
	my ($name, $session, $end) = @_;
	my $old = $observer->account($session->pid);
	my $seen = $observer->await(
		$session->pid,
		sub {
			$_->{state} eq 'executing'
			  and $_->{exec_time} - $old->{exec_time} >= 300;
		});

	ok($seen, "$name: execution in progress counts up to now");
	is(defined $seen ? $seen->{requests} : undef,
		$old->{requests}, "$name: a request in progress is not counted yet");
	$end->();
	my $new = $observer->settled($session);
	is( $new->{requests},
		$old->{requests} + 1,
		"$name: one request is counted");
	cmp_ok($new->{exec_time} - $old->{exec_time},
		'>=', 300, "$name: afterwards the time is execution");
	return;
}

$client = PgNetlat::Client->connect($node);
my $locker = PgNetlat::Client->connect($node);
$observer->settled($client);

$client->put(query('SELECT pg_sleep(600)'));
seen_executing(
	'pg_sleep, cancelled',
	$client,
	sub {
		$client->cancel;
		my ($error) = grep { $_->{type} eq 'E' } $client->until('Z');
		is($error->{error}{C},
			'57014', 'pg_sleep, cancelled: the client gets the error');
	});

$client->put(extended('SELECT pg_sleep(600)'), sync());
seen_executing(
	'pg_sleep in the extended protocol, cancelled',
	$client,
	sub {
		$client->cancel;
		$client->until('Z');
	});

$locker->run('BEGIN', 'UPDATE items SET note = 1');
$client->put(query('UPDATE items SET note = 2'));
seen_executing(
	'update of a locked row',
	$client,
	sub {
		$locker->run('COMMIT');
		$client->responses;
	});

# Nothing has been sent yet when these block.
$locker->run('BEGIN', 'LOCK items');
$client->put(query('SELECT * FROM items'));
seen_executing(
	'simple statement on a locked table',
	$client,
	sub {
		$locker->run('COMMIT');
		$client->responses;
	});

$locker->run('BEGIN', 'LOCK items');
$client->put(parse('', 'SELECT * FROM items'), describe('S', ''), sync());
seen_executing(
	'parse analysis on a locked table',
	$client,
	sub {
		$locker->run('COMMIT');
		$client->responses;
	});

# function call of pg_sleep()
$client->put(function_call($observer->oid('pg_sleep(float8)'), '600'));
seen_executing(
	'function call, cancelled',
	$client,
	sub {
		$client->cancel;
		$client->until('Z');
	});

# ---------------------------------------------------------------------------
# The sampled profile tells apart what core calls ClientRead
# ---------------------------------------------------------------------------

# Waits until the profile has so much time of a state and an event.
sub sampled
{
	my ($pid, $state, $event, $name) = @_;

	ok( $observer->poll(
			sub {
				(   $observer->value(
						"SELECT sum(time) FROM pgnetlat_waits
						 WHERE pid = $pid AND state = '$state'
						   AND $event") // 0) > 200;
			}),
		$name);
	return;
}

my $client_read = q{wait_event_type = 'Client' AND wait_event = 'ClientRead'};

$client->run(q{SET pgnetlat.idle_threshold = '1h'});
sampled($client->pid, 'waiting', $client_read,
	'the profile has ClientRead while waiting');
$client->run(q{SET pgnetlat.idle_threshold = '1ms'});
sampled($client->pid, 'idle', $client_read,
	'the profile has ClientRead while idle');
$client->run('BEGIN');
sampled($client->pid, 'waiting in transaction',
	$client_read,
	'the profile has ClientRead while waiting in a transaction');
$client->run('CREATE TEMP TABLE copied (t text)');
$client->put(query('COPY copied FROM STDIN'));
$client->until('G');
sampled($client->pid, 'receiving', $client_read,
	'the profile has ClientRead while receiving');
$client->put(copy_done());
$client->responses;
$client->put(query('SELECT pg_sleep(600)'));
sampled(
	$client->pid, 'executing',
	q{wait_event_type = 'Timeout' AND wait_event = 'PgSleep'},
	'the profile has PgSleep while executing');

# it has slept before: a cancel request must not come before the statement does
$observer->await($client->pid, sub { $_->{state} eq 'executing' });
$client->cancel;
$client->until('Z');
$client->run('ROLLBACK');
$client->put(query('SELECT count(*) FROM generate_series(1, 1000000000000)'));
sampled(
	$client->pid,
	'executing',
	q{wait_event_type IS NULL AND wait_event = 'CPU'}
	  . q{ OR wait_event_type = 'CPU'},
	'the profile has CPU where there is no wait event');
$observer->await($client->pid, sub { $_->{state} eq 'executing' });
$client->cancel;
$client->until('Z');

# Weighted with the time that really passed: it sums to the session's, give or
# take a tick at its ends, and what the sampler may have missed at first.
my ($both) = $observer->rows(
	'SELECT s.total_time, (SELECT sum(w.time) FROM pgnetlat_waits w WHERE w.pid = s.pid) AS sampled
	 FROM pgnetlat_sessions s WHERE s.pid = ' . $client->pid);
cmp_ok(
	$both->{sampled}, '<=',
	$both->{total_time} + 500,
	'samples stand for no more than total_time');
cmp_ok(
	$both->{sampled}, '>=',
	$both->{total_time} * 0.9 - 500,
	'samples stand for nearly all of total_time');

is( $observer->value(
		'SELECT count(*) FROM pgnetlat_waits WHERE samples <= 0 OR time < 0'),
	0,
	'every row of the profile has samples');

# ---------------------------------------------------------------------------
# The account begins when the first ReadyForQuery has been handed over
# ---------------------------------------------------------------------------

my $connecting = now();
$client =
  PgNetlat::Client->connect($node, before_startup => sub { pause(300) });
pause(300);
$client->run('SELECT 1');
$account = $observer->settled($client);
cmp_ok(
	$account->{total_time},
	'<=',
	now() - $connecting - 300,
	'what connecting took is not in the account');
at_least($account->{total_time},
	290, 'the wait after the first ReadyForQuery is in the account');
is($account->{requests}, 1,
	'the request after the first ReadyForQuery is in the account');
$client->finish;

no_violations($observer);
$node->stop;
done_testing();
