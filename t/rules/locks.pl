
# Copyright (c) 2026, the pgnetlat authors

# Locks: one finding, about whoever holds them.

use strict;
use warnings;

use PgNetlat::Figures;
use Test::More;

our $observer;
my @found;

my %holder = (
	application_name => 'batch',
	qw(pid 101  rtt 0.2  requests 30  transactions 10  exec_time 100  client_time 45000
	  in_xact_wait_time 45000),
	state => 'waiting in transaction',
	age => 46,
	query => 'UPDATE  t SET v = 1');
my %victims = (
	application_name => 'shop',
	qw(requests 4000  exec_time 55600  exec_lock_time 54000  client_time 3000)
);

sub incident
{
	add('databases', datid => 5, deadlocks => 1);
	session(%holder, blocking_time => 108000);
	group(
		map  { $_ => $holder{$_} }
		grep { !/^(pid|state|age|query)$/ } keys %holder);
	group(%victims, qw(exec_time 111200  exec_lock_time 108000  sessions 2));
	session(
		%victims,
		pid => $_,
		state => 'executing',
		blocked_by => 101,
		query => 'UPDATE t SET v = 2') foreach 201, 202;
	add('b',
		qw(datid 5  usesysid 10),
		application_name => "'batch'",
		qw(blocked_time 108000  blocked_by_client_time 100000  blocked_by_exec_time 8000)
	);
	return;
}
incident();
@found = expect(
	'blocks others',
	qr/^2 sessions of shop are blocked now \(108 s lost so far\)\. Holder: idle in transaction for 4\d s since UPDATE t SET v = 1; mostly its client was thinking$/,
	'a holder that thinks');
is(scalar(@found), 1, 'a holder that thinks: the only finding')
  or diag(explain(\@found));
is($found[0]{pid}, 101,
	'a holder that thinks: the finding is about its session');
like(
	$found[0]{advice},
	qr/SELECT pg_terminate_backend\(101\)/,
	'a holder that thinks: the advice has the command that ends it');
unlike($found[0]{advice}, qr/deadlock/,
	'a holder that thinks: the advice does not name deadlocks');
near($found[0]{lost_sessions},
	1.8, 'a holder that thinks: lost_sessions is what the others lost');
near(
	$found[0]{saving_sessions},
	1.8 * 100 / 108,
	"a holder that thinks: saving_sessions is its client's part");
is($found[0]{saving_share},
	undef, 'a holder that thinks: saving_share is NULL');

# right after it began: a part of the wait, or all of it, is not booked yet
sub beginning
{
	my ($booked, $blocked_by, $waits) = @_;
	my %group = (
		%victims,
		requests => 4,
		exec_time => 4 * $waits,
		exec_lock_time => 4 * $waits,
		qw(client_time 0  window_time 2000));

	session(%holder, blocking_time => $booked, window_time => 2000);
	group(%group, sessions => 4);
	session(
		%group,
		requests => 1,
		exec_time => $waits,
		exec_lock_time => $waits,
		pid => $_,
		state => 'executing',
		blocked_by => $blocked_by) foreach 201 .. 204;
	$observer->run(
		q{UPDATE figures.activity SET wait_event_type = 'Lock' WHERE pid > 200}
	);
	return;
}
beginning(300, 101, 300);
is( join(' ',
		map  { $_->{verdict} }
		grep { $_->{application_name} eq 'shop' } found()),
	'',
	'a lock wait that has just begun: no finding about the waiting sessions');
beginning(0, undef, 200);
is( join(' ',
		map  { $_->{verdict} }
		grep { $_->{application_name} eq 'shop' } found()),
	'',
	'a lock wait whose holder is being sought: no finding about the waiting sessions'
);
beginning(300, 101, 1500);
is( join(' ',
		map  { $_->{verdict} }
		grep { $_->{application_name} eq 'shop' } found()),
	'blocked',
	'a lock wait that has long had another holder: the waiting sessions have a finding'
);

incident();
$observer->run(
	q{UPDATE figures.activity SET query = 'CREATE INDEX ON t (v)' WHERE pid = 201}
);
@found = expect(
	'blocks others',
	qr/^2 sessions of shop are blocked now/,
	'a pile-up behind DDL');
like(
	$found[0]{advice},
	qr/CREATE INDEX CONCURRENTLY.*lock_timeout before DDL/,
	'a pile-up behind DDL: the advice names lock_timeout');

# a holder that goes on without the locks
session(
	%holder,
	state => 'waiting',
	blocking_time => 42000,
	query => 'COMMIT');
session(%victims, pid => 201);
@found = expect('blocks others', undef, 'a holder that has committed');
unlike($found[0]{advice}, qr/pg_terminate_backend/,
	'a holder that has committed: the advice has no command to end it');

# a holder that has disconnected
group(
	application_name => 'batch',
	qw(requests 2  client_time 45000  in_xact_wait_time 45000  ended_sessions 1  sessions 0)
);
group(%victims);
add('b',
	qw(datid 5  usesysid 10),
	application_name => "'batch'",
	qw(blocked_time 54000  blocked_by_client_time 54000));
@found = expect(
	'blocks others',
	qr/^Others waited 54 s for its locks, mostly while its client was thinking$/,
	'a holder that has ended');
unlike($found[0]{advice}, qr/pg_terminate_backend/,
	'a holder that has ended: the advice has no command to end it');
is(scalar(@found), 1, 'a holder that has ended: the only finding')
  or diag(explain(\@found));

# whoever holds locks has not caused a deadlock's waits
session(%holder, blocking_time => 42000);
session(%victims, pid => 201);
add('databases', datid => 5, deadlocks => 1);
@found = expect('blocks others', undef, 'deadlocks');
unlike($found[0]{advice}, qr/deadlock/,
	'deadlocks: the advice about a holder does not name them');

# no session holds the lock of a prepared transaction
group(%victims);
session(%victims, pid => 201, state => 'executing', blocked_by => 0);
@found = expect(
	'blocked',
	qr/^It waited 54 of 55\.6 s for locks\. Now it is blocked by a prepared transaction$/,
	'a prepared transaction');
like($found[0]{advice}, qr/pg_prepared_xacts/,
	'a prepared transaction: the advice names pg_prepared_xacts');
is(scalar(@found), 1, 'a prepared transaction: no finding about the server');
group(%victims,
	qw(exec_time 111200  exec_lock_time 108000  client_time 6000  sessions 2)
);
session(%victims, pid => $_, state => 'executing', blocked_by => 0)
  foreach 201, 202;
@found = expect(
	'blocked',
	qr/^It waited 108 of 111 s for locks\. Now it is blocked by a prepared transaction$/,
	'a prepared transaction, for which several wait');
like($found[0]{advice}, qr/pg_prepared_xacts/,
	'a prepared transaction, for which several wait: the advice names pg_prepared_xacts'
);
group(%victims);
add('databases', datid => 5, deadlocks => 3);
@found = expect('blocked', undef, 'deadlocks alone');
like(
	$found[0]{advice},
	qr/^pg_stat_database counts 3 deadlocks .*  Set log_lock_waits/,
	'deadlocks alone: the advice names them');
group(%victims);
@found = expect('blocked', undef, 'a holder that is not known');
unlike($found[0]{advice}, qr/pgnetlat_blockers/,
	'a holder that is not known: the advice does not name pgnetlat_blockers');
group(%victims);
add('b', datid => 5, application_name => "'other'", blocked_time => 100);
add('databases', datid => 5, deadlocks => 3);
@found = expect('blocked', undef, 'deadlocks beside another holder');
like(
	$found[0]{advice},
	qr/^pg_stat_database counts 3 deadlocks since its last reset: if the number is still growing, .*  See pgnetlat_blockers/,
	'deadlocks beside another holder: the advice names them');
group(%victims);
add('b',
	datid => 5,
	application_name => "'other'",
	backend_type => "'prepared transaction'",
	blocked_time => 53000);
add('databases', datid => 5, deadlocks => 3);
@found = expect(
	'blocks others',
	qr/^Others waited 53 s for its locks$/,
	'waits with a holder, old deadlocks');
unlike($found[0]{advice}, qr/deadlock/,
	'waits with a holder, old deadlocks: the advice does not name deadlocks');

# short waits of a TPC-B over a path: 48 ms for each transaction of seven requests
my %tpcb = (
	application_name => 'tpcb',
	qw(rtt 5  requests 17500  transactions 2500  exec_lock_time 119000  exec_time 130000
	  network_time 87500  client_time 1000  in_xact_wait_time 75000));
group(%tpcb, sessions => 4);
session(
	(   map {
				$_ => $tpcb{$_} =~ /^\d+$/ && $_ ne 'rtt'
			  ? $tpcb{$_} / 4
			  : $tpcb{$_}
		} keys %tpcb),
	pid => 300 + $_,
	blocking_time => 29750) foreach 1 .. 4;
@found = expect('lock contention',
	qr/waited 119 of 2\d\d s for one another's locks, 47\.6 of/,
	'contention');
is( join(', ', map { $_->{verdict} } @found),
	'lock contention, chatty',
	'contention: the next finding says why the locks are held');
like(
	$found[0]{advice},
	qr/^Send several statements in each round trip, since locks are held meanwhile, .* before COMMIT\.$/,
	'contention: the advice says for what the locks are held');

# 30 ms of thinking under a lock, with and without deadlocks, which have no holder
my %queue = (
	application_name => 'queue',
	qw(rtt 0.5  requests 4000  transactions 1000  network_time 2000  exec_time 123000
	  exec_lock_time 120000  client_time 35000  in_xact_wait_time 31500));

sub queue_with_holders
{
	my ($blocked_time) = @_;

	group(%queue, sessions => 5);
	session(
		(   map { $_ => $queue{$_} =~ /^\d+$/ ? $queue{$_} / 5 : $queue{$_} }
			  keys %queue),
		pid => 350 + $_,
		blocking_time => $blocked_time / 5) foreach 1 .. 5;
	add('b',
		qw(datid 5  usesysid 10),
		application_name => "'queue'",
		blocked_time => $blocked_time);
	add('databases', datid => 5, deadlocks => 35);
	return;
}
queue_with_holders(116000);
@found = expect('lock contention', undef, 'contention of thinking clients');
like(
	$found[0]{advice},
	qr/^Move the client's work to before it takes locks/,
	'contention of thinking clients: the advice is about thinking');
unlike($found[0]{advice}, qr/deadlock/,
	'contention of thinking clients: the advice does not name old deadlocks');
queue_with_holders(80000);
@found = expect('lock contention', undef, 'contention and deadlocks');
like(
	$found[0]{advice},
	qr/^Move the client's work .*  pg_stat_database counts 35 deadlocks since its last reset: .* same order/,
	'contention and deadlocks: the advice names deadlocks');

sub contending
{
	my ($wait) = @_;

	group(
		qw(requests 80000  transactions 12000),
		exec_time => 12000 * ($wait + 1),
		exec_lock_time => 12000 * $wait,
		sessions => 16);
	session(
		pid => 400 + $_,
		requests => 5000,
		exec_time => 800 * ($wait + 1),
		exec_lock_time => 800 * $wait,
		blocking_time => 750 * $wait) foreach 1 .. 16;
	return;
}
contending(7);
expect(
	'lock contention',
	qr/, 7 of 8 ms per transaction$/,
	'lock contention: most of the time of short transactions');
contending(2.5);
expect(
	'lock contention',
	qr/, 2\.50 of 3\.50 ms per transaction$/,
	'lock contention: most of the time of transactions of a few milliseconds'
);
contending(1);
healthy('a little contention');

1;
