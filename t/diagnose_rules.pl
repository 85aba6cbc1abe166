
# Copyright (c) 2026, the pgnetlat authors

# Each rule of pgnetlat_diagnose(), over figures that the test makes up: faults
# are found, the right one first, with the right numbers, and healthy clients
# have no findings.  No load is run, so that a busy machine changes nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Figures;
use PgNetlat::Test;
use Test::More;

my ($node, $observer) = start_node('rules');

use_figures($observer);

my @found = found();
is(scalar(@found), 1, 'no figures: there is one row');
is( "$found[0]{verdict}: $found[0]{evidence}",
	'no problem found: 0 requests',
	'no figures: the row says that there is no problem');
group(requests => 1, exec_time => 60);
expect(
	'no problem found',
	qr/^1 request: server 100 %, network 0 %, client 0 %$/,
	'one request');

# ---------------------------------------------------------------------------
# Locks: one finding
# ---------------------------------------------------------------------------

my %holder = (
	application_name => 'batch',
	pid => 101,
	rtt => 0.2,
	requests => 30,
	transactions => 10,
	exec_time => 100,
	client_time => 45000,
	in_xact_wait_time => 45000,
	state => 'waiting in transaction',
	age => 46,
	query => 'UPDATE  t SET v = 1');
my %victims = (
	application_name => 'shop',
	requests => 4000,
	exec_time => 55600,
	exec_lock_time => 54000,
	client_time => 3000);

sub incident
{
	add('databases', datid => 5, deadlocks => 1);
	session(%holder, blocking_time => 108000);
	group(
		map  { $_ => $holder{$_} }
		grep { !/^(pid|state|age|query)$/ } keys %holder);
	group(
		%victims,
		exec_time => 111200,
		exec_lock_time => 108000,
		sessions => 2);
	session(
		%victims,
		pid => $_,
		state => 'executing',
		blocked_by => 101,
		query => 'UPDATE t SET v = 2') foreach 201, 202;
	add('b',
		datid => 5,
		usesysid => 10,
		application_name => "'batch'",
		blocked_time => 108000,
		blocked_by_client_time => 100000,
		blocked_by_exec_time => 8000);
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
		client_time => 0,
		window_time => 2000);

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
	requests => 2,
	client_time => 45000,
	in_xact_wait_time => 45000,
	ended_sessions => 1,
	sessions => 0);
group(%victims);
add('b',
	datid => 5,
	usesysid => 10,
	application_name => "'batch'",
	blocked_time => 54000,
	blocked_by_client_time => 54000);
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
group(
	%victims,
	exec_time => 111200,
	exec_lock_time => 108000,
	client_time => 6000,
	sessions => 2);
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
	qr/^pg_stat_database counts 3 deadlocks .*  log_lock_waits/,
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
	qr/^pg_stat_database counts 3 deadlocks since its last reset: if the number is still growing, .*  pgnetlat_blockers/,
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
	rtt => 5,
	requests => 17500,
	transactions => 2500,
	exec_lock_time => 119000,
	exec_time => 130000,
	network_time => 87500,
	client_time => 1000,
	in_xact_wait_time => 75000);
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
	qr/^Locks are held during round trips, too: .* before COMMIT\.$/,
	'contention: the advice says for what the locks are held');

# 30 ms of thinking under a lock, with and without deadlocks, which have no holder
my %queue = (
	application_name => 'queue',
	rtt => 0.5,
	requests => 4000,
	transactions => 1000,
	network_time => 2000,
	exec_time => 123000,
	exec_lock_time => 120000,
	client_time => 35000,
	in_xact_wait_time => 31500);

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
		datid => 5,
		usesysid => 10,
		application_name => "'queue'",
		blocked_time => $blocked_time);
	add('databases', datid => 5, deadlocks => 35);
	return;
}
queue_with_holders(116000);
@found = expect('lock contention', undef, 'contention of thinking clients');
like(
	$found[0]{advice},
	qr/^The client thinks while it holds locks/,
	'contention of thinking clients: the advice is about thinking');
unlike($found[0]{advice}, qr/deadlock/,
	'contention of thinking clients: the advice does not name old deadlocks');
queue_with_holders(80000);
@found = expect('lock contention', undef, 'contention and deadlocks');
like(
	$found[0]{advice},
	qr/^The client thinks while .*  pg_stat_database counts 35 deadlocks since its last reset: .* same order/,
	'contention and deadlocks: the advice names deadlocks');

sub contending
{
	my ($wait) = @_;

	group(
		requests => 80000,
		transactions => 12000,
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

# ---------------------------------------------------------------------------
# Clients that think
# ---------------------------------------------------------------------------

my %thinks = (
	requests => 30,
	transactions => 10,
	exec_time => 100,
	client_time => 20000,
	in_xact_wait_time => 20000,
	idle_time => 39000);
group(%thinks);
session(%thinks, pid => 7, state => 'waiting in transaction', age => 3);
@found = expect(
	'idle in transaction',
	qr/^Its client thinks for 1818 of \d+ ms of each transaction, which holds locks that nobody waits for\. It has been thinking for 3\.\d s$/,
	'a client that thinks');
is($found[0]{pid}, 7,
	'a client that thinks: the finding is about one session');
like(
	$found[0]{advice},
	qr/^Move application work outside the transaction/,
	'a client that thinks: the advice is to move work out');

# half of a pool's connections were given back in a transaction
my %leak = (
	application_name => 'leak',
	requests => 90,
	transactions => 30,
	client_time => 60000,
	in_xact_wait_time => 200);
my %leaked = (
	%leak,
	requests => 0,
	transactions => 0,
	in_xact_wait_time => 60000,
	state => 'waiting in transaction',
	age => 75);
session(%leak, pid => 30 + $_)   foreach 1 .. 4;
session(%leaked, pid => 40 + $_) foreach 1 .. 4;
group(
	%leak,
	sessions => 8,
	requests => 360,
	transactions => 120,
	client_time => 480000,
	in_xact_wait_time => 240800);
expect(
	'idle in transaction',
	qr/^Its client thinks for 1942 of .*\. The longest now lasts 7\d s$/,
	'transactions that a pool has leaked');

my %short = (
	requests => 2000,
	transactions => 1000,
	exec_time => 1000,
	client_time => 58000,
	in_xact_wait_time => 57000);
group(%short);
@found = expect(
	'client-bound',
	qr/^The client thinks [\d.]+ of [\d.]+ ms per request in transactions, and the server takes 0\.50 ms\. Its locks block nobody$/,
	'a client that thinks less, all the time');
like(
	$found[0]{advice},
	qr/move its work outside the transaction/,
	'a client that thinks less, all the time: the advice is to move work out'
);
like(
	$found[0]{advice},
	qr/Exception: short jobs of a queue worker whose locks block nobody\.  Even then, VACUUM/,
	'a client that thinks less, all the time: the advice is about queues, too'
);
group(%short);
session(%short, pid => 7, blocking_time => 2000);
@found = grep { $_->{verdict} eq 'client-bound' } found();
like(
	$found[0]{evidence},
	qr/the server takes 0\.50 ms$/,
	'a client for which others wait: the evidence does not say that nobody waits'
);
group(requests => 20000, exec_time => 2000, client_time => 57500);
expect(
	'client-bound',
	qr/^The client thinks 2\.88 of/,
	'a loop of one connection');

# each has locked a row and thought, and now waits; pid 500 blocks all the others
sub chain
{
	my ($sessions) = @_;
	my %link = (
		application_name => 'chain',
		requests => 2,
		transactions => 0,
		exec_time => 20100,
		exec_lock_time => 20000,
		client_time => 3000,
		in_xact_wait_time => 3000);

	session(
		%link,
		pid => 500 + $_,
		state => 'executing',
		blocked_by => 500) foreach 1 .. $sessions;
	session(
		%link,
		pid => 500,
		exec_time => 100,
		exec_lock_time => 0,
		client_time => 23000,
		in_xact_wait_time => 23000,
		state => 'waiting in transaction',
		age => 20,
		blocking_time => 20000 * $sessions);
	group(
		%link,
		sessions => 1 + $sessions,
		requests => 2 * $sessions,
		exec_time => 20100 * $sessions,
		exec_lock_time => 20000 * $sessions,
		client_time => 23000 + 3000 * $sessions,
		in_xact_wait_time => 23000 + 3000 * $sessions);
	return;
}
chain(300);
@found = expect(
	'blocks others',
	qr/^300 sessions of chain are blocked now \(6000 s lost so far\)/,
	'a chain of lock waits');
is($found[0]{pid}, 500, 'a chain of lock waits: the finding names the root');
is(scalar(@found), 2, 'a chain of lock waits: all others have one finding')
  or diag(explain([ @found[ 0 .. 3 ] ]));
like(
	$found[1]{evidence},
	qr/^300 sessions have this\. In the worst one, pid 501: Its client thinks for 3 of 23\.1 s /,
	'a chain of lock waits: that finding has their number');
is( "$found[1]{subject_kind} $found[1]{subject}",
	'client chain',
	'a chain of lock waits: that finding is about the group');
near(
	$found[1]{lost_sessions},
	300 * 3 / 60,
	'a chain of lock waits: lost_sessions is a sum');
chain(3);
@found = found();
is( join(' ', map { $_->{pid} // 'none' } @found),
	'500 501 502 503',
	'a short chain of lock waits: each session has a finding');

# healthy ones
group(requests => 1500, exec_time => 500, client_time => 59400);
healthy('an insert each 40 ms');
group(
	requests => 1000,
	transactions => 200,
	exec_time => 500,
	client_time => 11000,
	in_xact_wait_time => 10000,
	idle_time => 48000);
healthy('pages with 50 ms of thinking');
group(
	requests => 4000,
	transactions => 1000,
	exec_time => 4000,
	client_time => 30000,
	in_xact_wait_time => 1000,
	idle_time => 400000,
	sessions => 8);
healthy('a pool of web connections');

# a proxy hides the path
my %proxied = (
	requests => 700,
	exec_time => 300,
	client_time => 56000,
	rtt => 0.01,
	client_addr => "'127.0.0.1'");
my %waits = (
	datid => 5,
	usesysid => 10,
	application_name => "'app'",
	metric => "'wait'",
	client_addr => "'127.0.0.1'",
	le => q{'{0.005,0.01,0.025,0.05,0.1,0.25,0.5,1.0,+Inf}'},
	count => 700);
my %connecting = (%waits, metric => "'connect'", count => 2, sum => 0.4);

group(%proxied);
add('h', %waits, bucket => q{'{2,3,5,8,690,698,700,700,700}'});
add('h', %connecting);
@found = expect(
	'hidden path',
	qr/^The round trip is 0\.01 ms, but \d+ % of the waits took between \d+ ms and \d+ ms, and connecting took 200 ms\. A proxy may hide the path$/,
	'a proxy');
near($found[0]{lost_sessions}, 56 / 60,
	'a proxy: lost_sessions is the waits');

foreach my $sum (undef, 0.02)
{
	group(%proxied);
	add('h', %waits, bucket => q{'{2,3,5,8,690,698,700,700,700}'});
	add('h', %connecting, sum => $sum) if defined $sum;
	@found = expect(
		'hidden path',
		qr/A proxy may hide the path, or the client asks on a schedule$/,
		'a proxy or a schedule');
	near($found[0]{lost_sessions},
		0, 'a proxy or a schedule: lost_sessions is 0');
}
group(%proxied, transactions => 100, in_xact_wait_time => 50000);
add('h', %waits, bucket => q{'{2,3,5,8,690,698,700,700,700}'});
@found = expect('hidden path', undef, 'a proxy, in transactions');
near($found[0]{lost_sessions},
	56 / 60, 'a proxy, in transactions: lost_sessions is the waits');

# TPC-B by several sessions, of which one has forgotten its transaction
my %proxied_xacts = (
	%proxied,
	requests => 1148,
	transactions => 229,
	client_time => 106600,
	in_xact_wait_time => 84330);
group(%proxied_xacts, sessions => 4);
session(
	(   map {
				$_ => $proxied_xacts{$_} =~ /^\d+$/
			  ? $proxied_xacts{$_} / 4
			  : $proxied_xacts{$_}
		} keys %proxied_xacts),
	pid => 20 + $_) foreach 1 .. 4;
add('h', %waits,
	count => 1148,
	bucket => q{'{2,3,5,8,900,1145,1148,1148,1148}'});
@found = expect('hidden path', undef, 'a proxy, in transactions of sessions');
is(scalar(@found), 1,
	'a proxy, in transactions of sessions: the only finding')
  or diag(explain(\@found));
group(%proxied_xacts, sessions => 2);
session(
	%proxied_xacts,
	pid => 25,
	requests => 10,
	transactions => 3,
	client_time => 20000,
	in_xact_wait_time => 20000,
	state => 'waiting in transaction',
	age => 19);
add('h', %waits,
	count => 1148,
	bucket => q{'{2,3,5,8,900,1145,1148,1148,1148}'});
@found = found();
is( join(', ', map { "$_->{subject_kind} $_->{verdict}" } @found),
	'client hidden path, session idle in transaction',
	'a proxy, and a session that is idle in transaction');

# pauses between transactions
group(
	%proxied,
	requests => 350,
	transactions => 48,
	client_time => 53600,
	in_xact_wait_time => 25400);
add('h', %waits,
	count => 350,
	bucket => q{'{0,0,0,1,302,302,303,350,350}'});
@found = expect(
	'hidden path',
	qr/100 % of the waits in transactions took between .*\. A proxy may hide the path$/,
	'a proxy, and pauses');
near(
	$found[0]{lost_sessions},
	25.4 / 60 * 350 / 302,
	'a proxy, and pauses: lost_sessions is without the pauses');
group(%proxied);
add('h', %waits, bucket => q{'{200,250,300,350,450,550,620,680,700}'});
healthy('waits of all lengths');

# ---------------------------------------------------------------------------
# The network
# ---------------------------------------------------------------------------

my %chatty = (
	rtt => 1.9,
	requests => 2100,
	transactions => 50,
	network_time => 3990,
	exec_time => 750,
	in_xact_wait_time => 3900);
group(%chatty);
statement(calls => 2000, network_time => 3900);
session(
	pid => 8,
	application_name => 'other',
	query_id => 42,
	query => 'SELECT a FROM b');
@found = expect(
	'chatty',
	qr/^42 round trips per transaction, 1\.90 ms each, take 79\.8 of 94\.8 ms\. Statement 42: SELECT a FROM b$/,
	'42 round trips');
is(scalar(@found), 1, '42 round trips: the only finding');
near($found[0]{lost_sessions},
	3.99 / 60, '42 round trips: lost_sessions is the network time');
near(
	$found[0]{saving_sessions},
	3.99 / 60 * 40 / 42,
	'42 round trips: all but two can be saved');
group(%chatty, application_name => 'pg_dump');
@found = expect('chatty', undef, 'pg_dump');
like(
	$found[0]{advice},
	qr/on or near the server/,
	'pg_dump: the advice is to run it near the server');
statement(
	calls => 2000,
	repeats => 1950,
	network_time => 3900,
	repeat_network_time => 3800,
	in_xact_wait_time => 3900);
group(%chatty, application_name => 'pg_dump');
@found = expect('chatty', undef, 'a query of pg_dump for each table');
is(scalar(@found), 1, 'a query of pg_dump for each table: the only finding');
group(%chatty, statements => 50);
@found = expect('chatty', qr/Most fetch further rows/, 'few statements');
like($found[0]{advice}, qr/fetch size/,
	'few statements: the advice names the fetch size');

my %far = (
	rtt => 10,
	requests => 5000,
	network_time => 50000,
	exec_time => 2000,
	client_time => 3000);
group(%far);
@found =
  expect('network-bound',
	qr/^1 round trip per transaction, 10 ms each, takes 10 of 11 ms$/,
	'far away');
group(%far, network_time => 49990);
expect(
	'network-bound',
	qr/^1 round trip per transaction/,
	'hardly less than one round trip');
near(
	$found[0]{saving_share},
	0.95 * 50 / 55,
	'far away: saving_share is nearly all network time');
group(
	rtt => 10,
	requests => 600,
	network_time => 6000,
	exec_time => 300,
	client_time => 53000);
healthy('a client that asks each 100 ms');
group(
	rtt => 10,
	requests => 160,
	transactions => 40,
	network_time => 1600,
	exec_time => 100,
	idle_time => 58000,
	in_xact_wait_time => 1200);
healthy('a worker that LISTENs');
group(
	rtt => 10,
	requests => 180,
	transactions => 60,
	statements => 6000,
	network_time => 1800,
	exec_time => 900,
	idle_time => 57000);
healthy('executemany once a second');
group(%far, rtt => 2.87);
session(%far, pid => 9, rtt => 0.5);
healthy('one measurement under load');

my %lossy = (
	rtt => 20,
	requests => 1000,
	network_time => 26600,
	exec_time => 500,
	client_time => 12000,
	retransmits => 30,
	packets_sent => 1000,
	packets_received => 1000);
group(%lossy);
@found = expect(
	'lossy path',
	qr/^30 of 1000 packets were sent again\. Responses took 6600 ms longer than the path, and requests about 6600 ms$/,
	'a path that loses packets');
is(scalar(@found), 1, 'a path that loses packets: the only finding');
near($found[0]{lost_sessions},
	13.2 / 60,
	'a path that loses packets: lost_sessions is of both directions');
group(
	%lossy,
	requests => 800,
	network_time => 60000,
	client_time => 20000,
	retransmits => 390,
	packets_sent => 12000,
	packets_received => 3800,
	bytes_received => 64000,
	bytes_sent => 15e6);
expect(
	'lossy path',
	qr/^390 of 12000 packets \(15 MB at 0\.25 MB\/s\) were sent again\. Responses took 44 s longer than the path, and requests about 2933 ms$/,
	'a path that loses packets of large responses');
group(
	%lossy,
	requests => 43,
	network_time => 21800,
	client_time => 4222,
	send_time => 187,
	send_blocked_time => 180,
	bytes_sent => 22e6,
	retransmits => 260,
	packets_sent => 15166);
@found = expect(
	'lossy path',
	qr/ \(22 MB at 1\.00 MB\/s\) were sent again\./,
	'a slow link that drops packets');
like(
	$found[0]{advice},
	qr/^Do clients with small results lose packets .* If not, .*: send less .*  If they do, have the path examined/,
	'a slow link that drops packets: the advice tells which it is');

# measured with pages of 20 kB, over 2 Mbit/s and 50 ms, and over 10 Mbit/s and 20 ms
my %narrow = (
	rtt => 50.58,
	requests => 89,
	exec_time => 24,
	send_time => 10,
	network_time => 11892,
	client_time => 254,
	packets_sent => 1323,
	bytes_sent => 1770420);
group(%narrow);
expect(
	'narrow path',
	qr/^The network limited sending for 7\.39 of 11\.9 s\. 1\.77 MB went at 0\.24 MB\/s$/,
	'large results over a slow link');
group(%narrow, requests => 700, rtt => 5);
healthy('short results over a path whose length varies');
group(
	rtt => 20.18,
	requests => 200,
	exec_time => 49,
	send_time => 11,
	network_time => 11679,
	client_time => 425,
	retransmits => 60,
	packets_sent => 3048,
	packets_received => 1730,
	bytes_received => 10637,
	bytes_sent => 4003518);
@found = expect('lossy path', undef,
	'a slow link that drops packets of results that fit into buffers');
like(
	$found[0]{advice},
	qr/send less/,
	'a slow link that drops packets of results that fit into buffers: the advice is to send less'
);
group(
	rtt => 100,
	requests => 50,
	exec_time => 100,
	send_time => 20000,
	send_blocked_time => 20000,
	bytes_sent => 20e6,
	retransmits => 40,
	packets_sent => 14000);
expect(
	'narrow path',
	qr/^The network limited sending for 20 of 20\.1 s\. 20 MB went at 1 MB\/s, and 40 of 14000 packets were sent again$/,
	'a narrow path');
group(
	rtt => 0.1,
	requests => 1,
	exec_time => 2900,
	send_time => 55700,
	send_blocked_time => 55700,
	send_client_time => 55700,
	bytes_sent => 5e6);
expect(
	'slow reader',
	qr/^The client was not reading for 55\.7 of 58\.6 s\. It read 5 MB at /,
	'a client that does not read');
group(
	requests => 1,
	exec_time => 1000,
	recv_time => 40000,
	bytes_received => 40e6);
expect(
	'slow loader',
	qr/^The server waited 40 of 41 s for more data .*\. 40 MB came at 1 MB\/s$/,
	'a client that does not send');
group(
	requests => 1,
	exec_time => 1000,
	recv_time => 40000,
	bytes_received => undef);
expect(
	'slow loader',
	qr/COPY FROM STDIN$/,
	'a client that does not send over a Unix-domain socket');

# ---------------------------------------------------------------------------
# Statements
# ---------------------------------------------------------------------------

my %loop = (
	calls => 10100,
	repeats => 10000,
	network_time => 20200,
	repeat_network_time => 20000,
	in_xact_wait_time => 20500,
	exec_time => 1000);
my %looper = (
	rtt => 2,
	requests => 10100,
	transactions => 100,
	network_time => 20200,
	exec_time => 1000,
	in_xact_wait_time => 20000);

sub loop
{
	my ($query, %row) = @_;

	statement(%loop, %row);
	group(%looper);
	session(
		pid => 10,
		application_name => 'other',
		query_id => 42,
		query => $query);
	return;
}
loop('SELECT * FROM child WHERE parent = $1');
@found = expect(
	'repeated statement',
	qr/^10000 of 10100 executions repeat .* = 21\.\d of 21\.2 s, by app: SELECT \* FROM child WHERE parent = \$1$/,
	'N+1');
is($found[0]{queryid}, 42, 'N+1: the finding is about the statement');
is(scalar(@found), 1, 'N+1: the only finding')
  or diag(explain(\@found));
loop('', queryid => '6000294846852582725');
@found = expect(
	'repeated statement',
	qr/, by app$/,
	'a tracer that sets application_name');
like($found[0]{advice}, qr/comment/, 'a tracer has advice of its own');
loop('SELECT 1', calls => 60100, client_time => 900000);
expect('repeated statement',
	undef, 'N+1 beside single calls of another application');
statement(
	calls => 2000,
	repeats => 15,
	network_time => 4000,
	repeat_network_time => 30);
group(
	requests => 2000,
	rtt => 2,
	network_time => 4000,
	exec_time => 1000,
	client_time => 30000,
	idle_time => 20000);
healthy('hardly any repeats');
statement(
	calls => 4760,
	repeats => 2370,
	network_time => 4760,
	repeat_network_time => 2370,
	in_xact_wait_time => 4000,
	exec_time => 10000);
group(
	rtt => 1,
	requests => 9520,
	transactions => 2390,
	network_time => 9520,
	exec_time => 40000,
	client_time => 10000,
	in_xact_wait_time => 7000);
healthy('two calls in each transaction');

# An N+1 in autocommit behind a transaction pooler on the server's host, measured
# with Django; and what looks similar.
sub hidden_loop
{
	my ($child, $parent, $group) = @_;
	my %child = (
		calls => 800,
		rows => 800,
		repeats => 760,
		exec_time => 87,
		network_time => 18,
		client_time => 1163,
		repeat_network_time => 17,
		%{ $child // {} });
	my %parent = (
		queryid => 43,
		calls => 40,
		rows => 800,
		exec_time => 22,
		client_time => 36,
		%{ $parent // {} });

	statement(%child);
	statement(%parent);
	group(
		rtt => 0.02,
		requests => $child{calls} + $parent{calls},
		network_time => $child{network_time},
		exec_time => $child{exec_time} + $parent{exec_time},
		client_time => $child{client_time} + $parent{client_time},
		%{ $group // {} });
	return;
}
hidden_loop();
@found = expect(
	'repeated statement',
	qr/^760 of 800 executions repeat an earlier one, for the rows of statement 43: 0\.11 ms of server and 0\.90 ms of waiting /,
	'N+1 behind a pooler');
is( "$found[0]{subject_kind} $found[0]{queryid}",
	'statement 42',
	'N+1 behind a pooler: the finding is about the statement');
is(scalar(@found), 1, 'N+1 behind a pooler: the only finding');
near(
	$found[0]{lost_sessions},
	760 * (87 / 800 + 36 / 40) / 60000,
	'N+1 behind a pooler: what the server sees is lost');
is($found[0]{saving_sessions},
	undef, 'N+1 behind a pooler: the saving is not known');
hidden_loop({}, { calls => 100 });
healthy('N+1 behind a pooler: but its bursts are not for these rows');
hidden_loop({}, { rows => 2000 });
healthy('N+1 behind a pooler: but most rows are not asked for');
hidden_loop({ client_time => 9000 }, { client_time => 400 });
healthy('a client that computes something for each row');
hidden_loop({ network_time => 1, client_time => 20 });
healthy('a pipeline for the rows of a statement');

# pgbench through pgbouncer: 20 clients, of whose requests 5 % are for a list
my %hot = (
	calls => 9420,
	rows => 9420,
	repeats => 6344,
	exec_time => 377,
	network_time => 104,
	client_time => 4199,
	repeat_network_time => 70);
my %lists = (calls => 492, rows => 9840, exec_time => 39, client_time => 270);

hidden_loop(\%hot, \%lists);
healthy('single calls of many clients of a pooler');
hidden_loop(
	{ %hot, network_time => 9420, repeat_network_time => 6344 },
	{ %lists, network_time => 492 },
	{ rtt => 1, total_time => 200000 });
healthy('single calls of many clients of a pooler on another host');

# Pooled with names: only loops repeat, and waits are idle time.
my %pooled = (
	calls => 80000,
	rows => 80000,
	repeats => 30000,
	exec_time => 8000,
	network_time => 0,
	client_time => 0,
	repeat_network_time => 0);
my %pages = (calls => 4000, rows => 80000, client_time => 0);

hidden_loop(\%pooled, \%pages, { pooler_requests => 500 });
expect(
	'repeated statement',
	qr/: 0\.10 ms of server and a wait of the pool each = 3000 of 8000 ms/,
	'N+1 behind a pooler that names its clients');
hidden_loop(\%pooled, \%pages);
healthy('the same without a pooler\'s names');
hidden_loop(\%pooled, \%pages, { pooler_requests => 5, round_trips => 500 });
healthy('a pipeline behind a pooler that names its clients');

session(
	pid => 11,
	state => 'executing',
	age => 190,
	exec_time => 60000,
	exec_cpu_time => 59000,
	query => 'SELECT count(*) FROM a, b',
	query_id => 42);
group(exec_time => 60000, exec_cpu_time => 59000);
@found = expect(
	'long statement',
	qr/^It has been executing for 3 min, mostly on CPU\. Statement 42: SELECT count\(\*\) FROM a, b$/,
	'a statement without an end');
is($found[0]{pid}, 11, 'a long statement: the finding is about its session');
like($found[0]{advice}, qr/pg_cancel_backend\(11\)/,
	'a long statement: the advice has the command that cancels it');
session(
	pid => 11,
	state => 'executing',
	age => 190,
	exec_time => 60000,
	exec_other_time => 60000,
	wait_event => "'PgSleep'");
group(exec_time => 60000, exec_other_time => 60000);
healthy('a session that sleeps');

# ---------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------

foreach my $cause (
	[ 'CPU time' => 'exec_cpu_time', 0.5 ],
	[ 'I/O' => 'exec_io_time', 0.5 ],
	[ 'waiting for a standby' => 'exec_replication_time', 1 ],
	[ 'waiting for another server' => 'exec_remote_time' ],
	[ 'other waits' => 'exec_other_time' ])
{
	group(
		requests => 1000,
		exec_time => 30000,
		$cause->[1] => 24000,
		client_time => 20000);
	@found =
	  expect('server-bound', qr/^24 of 30 ms per request are $cause->[0]$/,
		$cause->[0]);
	defined $cause->[2]
	  ? near(
		$found[0]{saving_sessions},
		0.4 * $cause->[2],
		"$cause->[0]: saving_sessions is what could be saved")
	  : is($found[0]{saving_sessions},
		undef, "$cause->[0]: saving_sessions is not known");
}
group(requests => 40, exec_time => 29000, exec_cpu_time => 29000);
healthy('a nightly batch');

my %starved = (
	requests => 1000,
	exec_time => 20000,
	exec_cpu_time => 18000,
	exec_lock_time => 1000,
	exec_unsampled_time => 1000,
	run_queue_time => 15000);
group(%starved);
@found =
  expect('starved',
	qr/^It waited for a CPU for 15 of 19 s, 15 of 19 ms per request$/,
	'too few CPUs');
is($found[0]{subject_kind},
	'server', 'too few CPUs: the finding is about the server');
group(%starved);
group(
	application_name => 'waits',
	requests => 100,
	exec_time => 900000,
	exec_lock_time => 100,
	exec_cpu_time => 800000,
	client_time => 1e6);
@found = found();
is( join(', ',
		map  { "$_->{application_name} $_->{verdict}" }
		grep { $_->{verdict} eq 'starved' } @found),
	'app starved',
	'too few CPUs for one group');
group(exec_time => 34000, exec_cpu_time => 34000, run_queue_time => 30600);
expect(
	'starved',
	qr/waited for a CPU for 30\.6 of 34 s$/,
	'a statement that has not completed');
group(
	requests => 453000,
	exec_time => 5600,
	exec_cpu_time => 5300,
	exec_unsampled_time => 300,
	client_time => 239000,
	run_queue_time => 163600,
	run_queue_wait_time => 163100,
	sessions => 16);
expect(
	'starved',
	qr/waited for a CPU for 164 of 169 s, 0\.36 of 0\.37 ms per request$/,
	'too few CPUs for short requests');

# measured with TPC-B by 8 clients, beside 8 other programs that compute, and with
# transactions of five requests before all other programs, in real-time priority
my %tpcb_starved = (
	requests => 313584,
	transactions => 44799,
	exec_time => 16532,
	exec_cpu_time => 8786,
	exec_lock_time => 6897,
	exec_unsampled_time => 113,
	send_time => 3723,
	network_time => 1634,
	client_time => 74640,
	in_xact_wait_time => 64900,
	run_queue_time => 35389,
	run_queue_wait_time => 32689,
	rtt => 0.006,
	sessions => 8);
group(%tpcb_starved);
expect(
	'starved',
	qr/waited for a CPU for 35\.4 of 41\.6 s, 0\.11 of 0\.13 ms per request$/,
	'too few CPUs for short requests of transactions');
group(%tpcb_starved, client_time => 140000);
healthy('short requests of transactions that lack a fifth of their time');
group(
	requests => 489036,
	transactions => 97807,
	exec_time => 8152,
	exec_cpu_time => 4012,
	exec_unsampled_time => 3041,
	send_time => 2681,
	network_time => 2456,
	client_time => 23071,
	in_xact_wait_time => 20260,
	run_queue_time => 15024,
	run_queue_wait_time => 13172,
	rtt => 0.006,
	sessions => 8);
healthy('clients without pauses, which take processors from one another');
group(
	requests => 49000,
	rtt => 0.5,
	exec_time => 1900,
	exec_cpu_time => 1800,
	exec_unsampled_time => 100,
	network_time => 25600,
	client_time => 26400,
	run_queue_time => 11000,
	run_queue_wait_time => 10600,
	sessions => 2);
healthy('short requests on a machine that is busy');
group(
	application_name => 'idle',
	requests => 140,
	exec_time => 35,
	run_queue_time => 1330,
	idle_time => 8e6,
	sessions => 140);
healthy('idle connections, for which the machine had no time');
group(
	application_name => 'idle',
	requests => 140,
	exec_time => 35,
	idle_time => 8e6,
	sessions => 140,
	connections => 140,
	connect_time => 60000);
healthy('idle connections that were made under load');

group(
	requests => 300,
	exec_time => 300,
	connections => 200,
	connect_time => 10000,
	ended_sessions => 199,
	rtt => 5);
@found = expect(
	'reconnects',
	qr/^200 connections took 60 ms each, in all 12 of 12\.3 s, for 300 requests$/,
	'clients that reconnect');
add('p', sessions => 90, pool_size => 3, window_time => 60000);
@found = expect(
	'too many connections',
	qr/^90 of 100 connections are held\.  A pool of 3 would/,
	'connections that are not needed');

# ---------------------------------------------------------------------------
# Privileges
# ---------------------------------------------------------------------------

$observer->run(
	'CREATE ROLE plain',
	'GRANT USAGE ON SCHEMA figures TO plain',
	'GRANT SELECT ON ALL TABLES IN SCHEMA figures TO plain');
incident();
$observer->run(
	'UPDATE figures.s SET requests = NULL, blocking_time = NULL, exec_lock_time = NULL',
	'SET ROLE plain');
@found = diagnose();
$observer->run('RESET ROLE');
is(scalar(@found), 1, 'a role that may see nothing: there is one row');
is( "$found[0]{verdict}: $found[0]{evidence}",
	'not visible: 3 of 3 sessions, and any problems they have, are hidden from plain',
	'a role that may see nothing: the row says how much is hidden');
like(
	$found[0]{advice},
	qr/^GRANT pg_read_all_stats TO plain/,
	'a role that may see nothing: the advice names pg_read_all_stats');

$observer->run(
	'TRUNCATE figures.s',
	'UPDATE figures.c SET requests = NULL',
	'SET ROLE plain');
@found = diagnose();
$observer->run('RESET ROLE');
is( join('; ', map { "$_->{verdict}: $_->{evidence}" } @found),
	'not visible: Sessions that have ended, and any problems they had, are hidden from plain',
	'a role that may not see sessions that have ended: the row says so');

# ---------------------------------------------------------------------------
# Other roles' operators
# ---------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE trapped');
foreach my $trap (
	[
		'operator',
		'CREATE FUNCTION public.f(float8, int) RETURNS float8 LANGUAGE sql RETURN 1; '
		  . 'CREATE OPERATOR public.* (LEFTARG = float8, RIGHTARG = int, FUNCTION = public.f)',
		'DROP FUNCTION public.f CASCADE'
	],
	[
		'function',
		q{CREATE FUNCTION public.concat(text, text, text) RETURNS text LANGUAGE sql RETURN ''},
		'DROP FUNCTION public.concat'
	])
{
	my ($what, $plant, $remove) = @$trap;

	$node->safe_psql('trapped', $plant);
	my ($code, $out, $err) =
	  $node->psql('trapped', 'CREATE EXTENSION pgnetlat');
	like(
		$err,
		qr/extension "pgnetlat" would use $what/,
		"$what of another role: CREATE EXTENSION fails");
	$node->safe_psql('trapped', $remove);
}
$node->safe_psql('trapped', 'CREATE EXTENSION pgnetlat');

$node->stop;
done_testing();
