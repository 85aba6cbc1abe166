
# Copyright (c) 2026, the pgnetlat authors

# Windows: differences of exact accounts, which add up, contain what happened in
# the window, and nothing from before it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('windows');

# ---------------------------------------------------------------------------
# A session that is younger than the window
# ---------------------------------------------------------------------------

my $young =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'young');
$young->run(('SELECT 1') x 3);
my $account = $observer->settled($young);
my $window = $observer->window('15 min', $young->pid);
is($window->{requests}, $young->responded,
	'a young session: its window is its whole life');
is( $window->{stats_since},
	$account->{stats_since},
	'a young session: its window began when it was connected');
cmp_ok(
	$window->{window_time},
	'>',
	$account->{total_time},
	'a young session: window_time grows');
cmp_ok(
	$window->{window_time},
	'<',
	$observer->account($young->pid)->{total_time},
	'a young session: the window has the whole account');
is($window->{$_}, $account->{$_}, "$_ is as in pgnetlat_sessions")
  foreach qw(pid datid datname usesysid usename application_name client_addr
  client_port backend_start transport state state_change rtt);

is( $observer->value(
		"SELECT requests FROM pgnetlat_sessions_last() WHERE pid = "
		  . $young->pid),
	3,
	'without a duration, a young session has all its requests');

# ---------------------------------------------------------------------------
# What is asked for
# ---------------------------------------------------------------------------

foreach my $bad ('0', '-1 s', '1 day -24:00:01')
{
	my ($ret, $out, $err) = $node->psql(
		'postgres',
		"SELECT * FROM pgnetlat_sessions_last('$bad')",
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	like(
		$err,
		qr/ERROR:  22023: duration must be positive/,
		"'$bad' is an error: it must be positive");
	like(
		$err,
		qr/HINT:  Specify how far to look back/,
		"the error for '$bad' has a hint to look back");
}
foreach
  my $bad ('15:00.000001', '16 min', '1 day', '100 years', '178000000 years')
{
	my ($ret, $out, $err) = $node->psql(
		'postgres',
		"SELECT * FROM pgnetlat_sessions_last('$bad')",
		extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	like(
		$err,
		qr/ERROR:  22023: duration must not be more than 15 minutes/,
		"'$bad' is an error: it is too long");
	like(
		$err,
		qr/HINT:  Use pgnetlat_history/,
		"the error for '$bad' has a hint to pgnetlat_history");
}
foreach
  my $good ('1 us', '15 min', '1 day -23:59:50', '-1 mon 29 days 24:00:05')
{
	is( $observer->error_of(
			"SELECT * FROM pgnetlat_sessions_last(duration => '$good')"),
		'',
		"'$good' is no error");
}

# ---------------------------------------------------------------------------
# What happened before the window is not in it
# ---------------------------------------------------------------------------

my $early =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'early');
my $changing =
  PgNetlat::Client->connect($node, application_name => 'changing');
my $busy =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'busy');
$_->run(('SELECT 1') x 100) foreach $early, $busy;
$changing->run('BEGIN');
pause(2000);
$changing->put(query('SELECT pg_sleep(60)'));

# a session that waited for its client and now is the server's
my $now;
ok( $observer->poll(
		sub {
			$busy->run('BEGIN', 'SELECT 1', 'COMMIT');
			$now = $observer->window('1 s', $changing->pid);
			$now->{client_time} == 0 && $now->{exec_time} > 0;
		}),
	'what a session did a while ago is no longer in its window');
is($now->{exec_time}, $now->{window_time},
	'a session that executes: its window is all execution');
is($now->{server_share}, 1,
	'a session that executes: server_share of its window is 1');
is($now->{requests}, 0, 'a session that executes: its window has no request');
cmp_ok($now->{window_time}, '>=', 1000,
	'a session that executes: its window is at least as long as asked');
cmp_ok($observer->account($changing->pid)->{client_share},
	'>', 0.1, 'a session that executes: its whole account has client time');
$changing->cancel;
$changing->until('Z');

# the kept window of ten seconds, of sessions that are older; and one that always
# has something pending when a snapshot is taken
my $slow =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'slow');
my $next = now();
ok( $observer->poll(
		sub {
			$busy->run('BEGIN', 'SELECT 1', 'COMMIT');
			if (now() > $next)
			{
				$slow->run('SELECT 1');
				$next = now() + 500;
			}
			$observer->window($_, $slow->pid) foreach '1 us', '3 s';
			$now = $observer->window('10 s', $early->pid);
			$now->{stats_since}
			  gt $observer->account($early->pid)->{stats_since}
			  && $now->{requests} == 0;
		}),
	'an idle session: ten seconds later its window has no requests');
cmp_ok($now->{window_time}, '>=', 10_000,
	'an idle session: its window is at least ten seconds');
is($now->{idle_time}, $now->{window_time},
	'an idle session: its window is idle time');
is($now->{bytes_sent}, 0, 'an idle session: its window has no bytes sent');
is($now->{server_share}, undef, 'an idle session: its window has no shares');
is($observer->account($early->pid)->{requests},
	100, 'an idle session: its account has all requests');
is($observer->window('15 min', $early->pid)->{requests},
	100, 'an idle session: a longer window has all requests');

$slow->finish;

# requests that were counted once are in one window or in another
my ($before, $all);
ok( $observer->poll(
		sub {
			$busy->run('SELECT 1');
			$before = $observer->window('10 s', $busy->pid);
			$all = $observer->account($busy->pid);
			$before->{requests} < $all->{requests};
		}),
	'not all requests of a busy session are in its window');
cmp_ok($before->{requests}, '>', 0,
	'some requests of a busy session are in its window');

# ---------------------------------------------------------------------------
# What begins a new window
# ---------------------------------------------------------------------------

# a session in the place of another one
$young->finish;
$observer->ended('young');
$young =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'younger');
$young->run(('SELECT 1') x 2);
$account = $observer->settled($young);
$window = $observer->window('10 s', $young->pid);
is($window->{requests}, $young->responded,
	'a new session in the same slot: its window has its own requests');
is( $window->{stats_since},
	$account->{stats_since},
	'a new session in the same slot: its window begins with it');
ok( $observer->poll(
		sub {
			$observer->window('1 us', $young->pid)->{stats_since}
			  gt $account->{stats_since};
		}),
	'a new session in the same slot: it gets a snapshot');
cmp_ok(
	$observer->window('10 s', $young->pid)->{stats_since},
	'ge',
	$account->{stats_since},
	'a new session in the same slot: no snapshot is older than it');

# a reset
$observer->run('SELECT pgnetlat_reset()');
$_->begin_anew foreach $early, $busy, $young;
$early->run('SELECT 1');
$account = $observer->settled($early);
foreach my $duration ('10 s', '15 min')
{
	$window = $observer->window($duration, $early->pid);
	is($window->{requests}, 1,
		"reset: the window of $duration has what came after it");
	is( $window->{stats_since},
		$account->{stats_since},
		"reset: the window of $duration begins with it");
}
cmp_ok(
	$observer->window('1 us', $early->pid)->{stats_since},
	'ge',
	$account->{stats_since},
	'reset: no snapshot is older than it');

# ---------------------------------------------------------------------------
# A reset of one session
# ---------------------------------------------------------------------------

sub samples
{
	return $observer->value(
		'SELECT coalesce(sum(samples), 0) FROM pgnetlat_waits WHERE pid = '
		  . $_[0]);
}

$account = $observer->account($busy->pid);
ok( $observer->poll(
		sub {
			$observer->window('1 us', $busy->pid)->{stats_since}
			  gt $account->{stats_since};
		}),
	'reset of a session: there is a snapshot older than it');
$busy->run(('SELECT 1') x 50);
$account = $observer->settled($busy);
my $others = $observer->account($early->pid);
my $samples;
ok($observer->poll(sub { ($samples = samples($busy->pid)) >= 20 }),
	'reset of a session: the session has samples');
my ($booked) =
  map { $_->{requests} } $observer->clients("application_name = 'busy'");
my $since =
  $observer->value('SELECT pgnetlat_reset_session(' . $busy->pid . ')');
cmp_ok(samples($busy->pid), '<', $samples,
	'reset of a session: there are fewer samples after it');
$busy->begin_anew;
$now = $observer->account($busy->pid);
is($now->{stats_since}, $since, 'reset of a session: it returns stats_since');
is($now->{$_}, 0, "reset of a session: $_ is 0")
  foreach qw(requests statements transactions bytes_sent exec_time send_time);
$busy->run(('SELECT 1') x 3);
is($observer->settled($busy)->{requests},
	$busy->responded, 'reset of a session: it counts again');

foreach my $duration ('1 us', '10 s', '15 min')
{
	$window = $observer->window($duration, $busy->pid);
	cmp_ok($window->{requests}, '<=', 3,
		"reset of a session: a window of $duration has what came after it");
	cmp_ok($window->{stats_since},
		'ge', $since,
		"reset of a session: a window of $duration begins after it");
}
is($observer->window('15 min', $busy->pid)->{stats_since},
	$since, 'reset of a session: the longest window begins with it');
ok( $observer->poll(
		sub {
			$observer->window('1 us', $busy->pid)->{stats_since} gt $since;
		}),
	'reset of a session: a shorter window begins at a snapshot');
is( $observer->account($early->pid)->{stats_since},
	$others->{stats_since},
	'reset of a session: other sessions keep their counts');
is( ($observer->clients("application_name = 'busy'"))[0]{requests},
	$booked + 3,
	'reset of a session: its group keeps its counts');
is($observer->value('SELECT pgnetlat_reset_session(0)'),
	undef, 'reset of a session: NULL if there is no such process');

# a session that is stopped, somewhere in the middle of its work, holds nobody up
foreach my $round (1 .. 10)
{
	my $asked;

	$busy->put(query('SELECT 1') x 300);
	pause(rand(10));
	kill('STOP', $busy->pid) or die "it cannot be stopped: $!";
	$asked = now();
	$observer->run('SELECT pgnetlat_reset_session(' . $busy->pid . ')');
	$observer->value(q{SELECT count(*) FROM pgnetlat_sessions_last('10 s')});
	cmp_ok(now() - $asked, '<', 10_000, 'a stopped session can be reset');
	kill('CONT', $busy->pid);
	$busy->until('Z') foreach 1 .. 300;
}

$busy->finish;
$observer->ended('busy');
$busy =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'busy');
$account = $observer->settled($busy);
cmp_ok(
	$account->{stats_since},
	'ge',
	$account->{backend_start},
	'a new session in the same slot has its own account');

# ---------------------------------------------------------------------------
# Groups of clients
# ---------------------------------------------------------------------------

# The group of one application, over a window; and with all it has.
sub group
{
	my ($duration, $name) = @_;
	my ($row) =
	  $observer->clients_window($duration, "application_name = '$name'");

	return $row;
}

sub whole_group
{
	my ($name) = @_;
	my ($row) = $observer->clients("application_name = '$name'");

	return $row;
}

# one that is younger than the window
my @pool = map {
	PgNetlat::Client->connect($node, tcp => 1, application_name => 'pool')
} 1 .. 3;
$_->run(('SELECT 1') x 10) foreach @pool;
$observer->settled($_) foreach @pool;
my $group = group('15 min', 'pool');
my $whole = whole_group('pool');
is($group->{$_}, $whole->{$_}, "group: $_ of a window is that of its life")
  foreach
  qw(datid datname usesysid usename application_name client_addr sessions
  ended_sessions requests statements transactions bytes_sent stats_since rtt);
cmp_ok($group->{total_time}, '<=', $whole->{total_time},
	'group: total_time of a window is at most that of its life');
is(group('15 min', 'early')->{requests},
	1, 'group: a reset begins a new window');

# one that is older
$pool[2]->finish;
ok( $observer->poll(
		sub {
			$busy->run('BEGIN', 'SELECT 1', 'COMMIT');
			$group = group('10 s', 'pool');
				 $group->{stats_since} gt $whole->{stats_since}
			  && $group->{requests} == 0
			  && $group->{ended_sessions} == 0
			  && $group->{pending_time} == 0;
		}),
	'group: ten seconds later its requests are gone');
is($group->{sessions}, 2, 'group: sessions of a window are the live ones');
cmp_ok($group->{window_time}, '>=', 10_000,
	'group: the window is at least ten seconds');
at_least(
	$group->{idle_time},
	2 * $group->{window_time},
	'group: both sessions were idle in it');
at_least(
	2 * $group->{window_time},
	$group->{idle_time} - 2000,
	'group: both sessions were idle for no longer');
is(group('15 min', 'pool')->{requests},
	30, 'group: a longer window has all requests');
is(whole_group('pool')->{requests}, 30,
	'group: the account has all requests');

# a reset of some
is( $observer->value(
		q{SELECT pgnetlat_reset_clients(application_name => 'nobody')}),
	0,
	'reset of groups: none has that application name');
is( $observer->value(
		q{SELECT pgnetlat_reset_clients(application_name => 'pool', client_addr => '::1')}
	),
	0,
	'reset of groups: none has that address');
is($observer->value("SELECT pgnetlat_reset_clients($_ => 0)"),
	0, "reset of groups: none has $_ 0")
  foreach qw(datid usesysid);
like(
	$observer->error_of(
		q{SELECT pgnetlat_reset_clients(client_addr => '127.0.0.0/8')}),
	qr/^client_addr must be the address of a host/,
	'reset of groups: a network is an error');
my $early_group = whole_group('early');
$pool[0]->run(('SELECT 1') x 10);
$observer->settled($pool[0]);
my $sums =
	'SELECT sum(requests) AS requests, sum(ended_sessions) AS ended_sessions,'
  . ' sum(exec_time) AS exec_time, sum(bytes_sent) AS bytes_sent FROM pgnetlat_clients';
my $observations =
  q{SELECT sum(count) FROM pgnetlat_histogram WHERE le = '+Inf'};
my ($before_reset) = $observer->rows($sums);
my $observations_before = $observer->value($observations);
is( $observer->value(
		q{SELECT pgnetlat_reset_clients(datid, usesysid, application_name, client_addr)
			FROM pgnetlat_clients WHERE application_name = 'pool'}),
	1,
	'reset of a group: one is reset');
my ($after_reset) = $observer->rows($sums);
cmp_ok($after_reset->{$_}, '>=', $before_reset->{$_},
	"reset of a group: the sum of $_ does not fall")
  foreach sort keys %$before_reset;
cmp_ok($observer->value($observations),
	'>=', $observations_before,
	'reset of a group: the sums of histograms do not fall');
is( $observer->value(
		q{SELECT sum(requests) + sum(ended_sessions)
			FROM pgnetlat_clients_last('15 min') WHERE application_name = '(evicted)'}
	),
	0,
	'reset of a group: the evicted row has nothing of it in a window');
$group = whole_group('pool');
is($group->{$_}, 0, "reset of a group: $_ is 0")
  foreach qw(requests ended_sessions exec_time bytes_sent);
is($group->{sessions}, 2, 'reset of a group: it keeps its sessions');
cmp_ok($group->{stats_since}, 'gt', $whole->{stats_since},
	'reset of a group: stats_since is later');
is(group($_, 'pool')->{requests},
	0, "reset of a group: a window of $_ has no requests")
  foreach '1 us', '15 min';
is( $observer->value(
		q{SELECT sum(count) FROM pgnetlat_histogram
		  WHERE application_name = 'pool' AND le = '+Inf' AND metric <> 'rtt'}),
	0,
	'reset of a group: its histograms are empty');
$pool[0]->run('SELECT 1');
$observer->settled($pool[0]);
is(whole_group('pool')->{requests},
	1, 'reset of a group: its account counts again');
is(group('15 min', 'pool')->{requests},
	1, 'reset of a group: its windows count again');
is( whole_group('early')->{stats_since},
	$early_group->{stats_since},
	'reset of a group: other groups keep their counts');
$whole = whole_group('pool');

# what has been saved is older than any window
no_violations($observer);
$_->finish foreach $observer, $young, $early, $busy, $changing, @pool;
$node->append_conf('postgresql.conf', 'pgnetlat.max_clients = 10');
$node->restart;
$observer = PgNetlat::Observer->connect($node);
is(whole_group('pool')->{requests},
	1, 'restart: the account has the requests');
foreach my $duration ('1 us', '10 s', '15 min')
{
	is(group($duration, 'pool')->{requests},
		0, "restart: a window of $duration has no requests");
	is(group($duration, 'pool')->{ended_sessions},
		0, "restart: a window of $duration has no ended sessions");
}
is( $observer->value(
		q{SELECT bool_and(stats_since >= pg_postmaster_start_time() - interval '10 s'
			AND window_time <= extract(epoch FROM clock_timestamp() - stats_since) * 1000 + 1)
		  FROM pgnetlat_clients_last('15 min')}),
	't',
	'restart: windows begin with the server');

# what is evicted takes its past along
sub sum_since
{
	my @rows =
	  $observer->clients_window('1 us', "application_name <> 'observer'");
	my $sum = 0;

	$sum += $_->{requests} foreach @rows;

	# when the window began, but for groups that are younger
	my ($since) = sort map { $_->{stats_since} } @rows;

	return ($since, $sum, scalar(grep { !defined $_->{usesysid} } @rows));
}

my $number = 0;
ok( $observer->poll(
		sub {
			my ($since, $sum) = sum_since();

			for (1 .. 20)
			{
				my $client =
				  PgNetlat::Client->connect($node,
					application_name => 'one of many ' . $number++);

				$client->run('SELECT 1', 'SELECT 2');
				$client->finish;
				$observer->ended('one of many ' . ($number - 1));
			}

			# another snapshot may have been taken meanwhile
			my ($same, $later, $evicted) = sum_since();

			return 0 if $same ne $since;
			is($later - $sum,
				40, 'the evicted row has all requests of the window');
			cmp_ok($evicted, '>', 0,
				'the evicted row has requests of the window');
			return 1;
		}),
	'groups were evicted');

# ---------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------

no_violations($observer);
$observer->finish;

sub memory
{
	my ($connections) = @_;

	$node->adjust_conf('postgresql.conf', 'max_connections', $connections);
	$node->restart;
	return $node->safe_psql('postgres',
		'SELECT shared_memory_bytes FROM pgnetlat_info');
}

cmp_ok((memory(300) - memory(100)) / 200,
	'<=', 12_288, 'memory per possible connection is at most 12 kB');

$node->stop;
done_testing();
