
# Copyright (c) 2026, the pgnetlat authors

# The number of sessions that are busy at once: known numbers of sessions that
# execute, send, receive or wait in a transaction, for known parts of the time.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(max);
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('pools', conf => 'pgnetlat.max_pools = 10');
$node->start;
my $observer = PgNetlat::Observer->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	map { "CREATE ROLE $_ LOGIN SUPERUSER" } qw(steady steps short windows),
	map { "role_$_" } 1 .. 12);

my @QUANTILES = qw(busy_p50 busy_p95 busy_p99 busy_p999);

# A row, checked against itself.
sub checked
{
	my ($row) = @_;
	my $previous = 0;

	return unless $row;
	foreach my $column (@QUANTILES, 'busy_max')
	{
		$observer->_complain($row,
			"$row->{usename}: $column is less than $previous")
		  if ($row->{$column} // $previous) < $previous;
		$previous = $row->{$column} // $previous;
	}

	# a window has no sessions_max
	$observer->_complain($row, 'sessions exceed their maximum')
	  if $row->{sessions} > ($row->{sessions_max} // $row->{sessions});
	$observer->_complain($row, 'more are busy than are connected')
	  if ($row->{busy} // 0) > $row->{sessions};
	return $row;
}

sub pool
{
	my ($role, $from) = @_;
	my ($row) =
	  $observer->rows('SELECT * FROM '
		  . ($from // 'pgnetlat_pools')
		  . " WHERE usename = '$role' AND datname = 'postgres'");

	return checked($row);
}

# All sessions together.
sub all_sessions
{
	my ($row) = $observer->rows(
		'SELECT * FROM pgnetlat_pools WHERE datname IS NULL AND usename IS NULL'
	);

	return checked($row);
}

sub client
{
	my ($role) = @_;

	return PgNetlat::Client->connect($node, user => $role);
}

# Waits until a pool's row meets a condition (in $_), and returns it.
sub await
{
	my ($role, $condition) = @_;

	return $observer->poll(
		sub {
			local $_ = pool($role);
			return $_ && $condition->() ? $_ : undef;
		}) // pool($role);
}

# Resets everything, then waits until this many milliseconds have been sampled.
sub count_anew
{
	my ($milliseconds) = @_;

	$observer->run('SELECT pgnetlat_reset()');
	pause($milliseconds);
	return;
}

# ---------------------------------------------------------------------------
# The same number all the time
# ---------------------------------------------------------------------------

my @idle = map { client('steady') } 1 .. 20;
my @in_xact = map { client('steady') } 1 .. 3;
my @executing = map { client('steady') } 1 .. 2;
$_->run('BEGIN', 'SELECT 1') foreach @in_xact;
$_->put(query('SELECT pg_sleep(600)')) foreach @executing;
my $row = await('steady', sub { $_->{busy} == 5 });
is( "$row->{busy} of $row->{sessions}",
	'5 of 25',
	'steady: 5 sessions are busy, 25 are connected');
is($row->{sessions_max}, 25,
	'steady: sessions_max has all that were connected');

# those in a transaction are quiet by now
count_anew(1000);
$row = await('steady',
	sub { defined $_->{busy_p50} and abs($_->{busy_avg} - 5) < 0.05 });
is($row->{$_}, 5, "steady: $_ is 5")
  foreach @QUANTILES, qw(busy busy_max pool_size);
cmp_ok(abs($row->{busy_avg} - 5), '<', 0.05, 'steady: busy_avg is 5');
is($row->{sessions_max}, 25, 'steady: sessions_max after a reset is 25');
my $all = all_sessions();
is($all->{sessions}, 26,
	'steady: the row of all sessions has the observer, too');
cmp_ok($all->{busy_p50}, '>=', 5,
	'steady: at least five of all sessions are busy');
cmp_ok($all->{busy_p50}, '<=', 6,
	'steady: at most six of all sessions are busy');

# while nobody is active, the sampler sleeps
$_->cancel foreach @executing;
await('steady', sub { $_->{busy} == 3 });
count_anew(1500);
$row = pool('steady');
is($row->{$_}, 3, "asleep: $_ is 3")
  foreach @QUANTILES, qw(busy busy_max pool_size);

# a sampler that is started anew knows nothing of those that are quiet
my $sampler = $observer->value('SELECT sampler_pid FROM pgnetlat_info');
$observer->run("SELECT pg_terminate_backend($sampler)");
ok( $observer->poll(
		sub {
			(   $observer->value(
					"SELECT sampler_pid <> $sampler FROM pgnetlat_info")
				  // '') eq 't';
		}),
	'the sampler is restarted');
$row = await('steady', sub { ($_->{busy} // -1) == 3 });
is($row->{busy}, 3, 'the restarted sampler finds the busy sessions again');
is($row->{busy_p50}, 3, 'a restart of the sampler loses nothing');

# a session that ends is no longer busy, whatever it did
$observer->run('SELECT pg_terminate_backend(' . $in_xact[2]->pid . ')');
$row = await('steady', sub { $_->{sessions} == 24 });
is( "$row->{busy} of $row->{sessions}",
	'2 of 24',
	'a terminated session is neither busy nor connected');
$in_xact[1]->run('SET pgnetlat.enabled = off');
$row = await('steady', sub { $_->{busy} == 1 });
is($row->{busy}, 1, 'a session with counting off is not busy');
$in_xact[1]->run('SET pgnetlat.enabled = on', 'COMMIT');
$in_xact[0]->run('COMMIT');
is(await('steady', sub { $_->{busy} == 0 })->{busy},
	0, 'steady: no session is busy any more');

# a COPY whose client sends nothing, and a response that nobody reads
$observer->run('CREATE TABLE lines (line text)');
$idle[0]->put(query('COPY lines FROM STDIN'));
$idle[1]
  ->put(query(q{SELECT repeat('x', 100000) FROM generate_series(1, 1000)}));
is(await('steady', sub { $_->{busy} == 2 })->{busy},
	2, 'receiving and sending are busy');
count_anew(1000);
$row = await('steady', sub { abs($_->{busy_avg} - 2) < 0.05 });
is($row->{busy_p50}, 2, 'receiving and sending: busy_p50 is 2');
cmp_ok(abs($row->{busy_avg} - 2),
	'<', 0.05, 'receiving and sending: busy_avg is 2');
$_->vanish foreach @idle[ 0, 1 ];
is(await('steady', sub { $_->{sessions} == 22 })->{busy},
	0, 'receiving and sending: vanished sessions are not busy');

# ---------------------------------------------------------------------------
# Parts of the time
# ---------------------------------------------------------------------------

# Four sessions are in a transaction for a part of the time, and nobody for the
# rest.  When is known between when the test asked for it and had the answer.
my @steps = map { client('steps') } 1 .. 4;

# One round; its row, with the bounds of busy_avg.
sub step_round
{
	$observer->run('SELECT pgnetlat_reset()');
	my $reset = now();
	$_->put(query('BEGIN')) foreach @steps;
	$_->responses foreach @steps;
	my $begun = now();
	pause(1000);
	my $ending = now();
	$_->put(query('COMMIT')) foreach @steps;
	$_->responses foreach @steps;
	my $ended = now();
	pause(3000);
	my $read_from = now();
	my $round = pool('steps');
	my $read_to = now();

	$round->{least} = 4 * ($ending - $begun) / ($read_to - $reset + 50);
	$round->{most} = 4 * ($ended - $reset) / ($read_from - $reset);
	return $round;
}

$row = step_round();
is($row->{busy_p95}, 4, 'steps: busy_p95 is the upper level');
is($row->{busy_p50}, 0, 'steps: busy_p50 is the lower level');
is($row->{busy_max}, 4, 'steps: busy_max is the upper level');
cmp_ok(
	$row->{busy_avg}, '>=',
	$row->{least} - 0.2,
	'steps: busy_avg is not too low');
cmp_ok(
	$row->{busy_avg}, '<=',
	$row->{most} + 0.2,
	'steps: busy_avg is not too high');

# ---------------------------------------------------------------------------
# Exchanges shorter than a tick
# ---------------------------------------------------------------------------

sub ticks
{
	return $observer->value('SELECT sampler_ticks FROM pgnetlat_info');
}

# Busy for a third of the time, and less on a slow machine.
my $short = client('short');

$observer->run('SELECT pgnetlat_reset()');
my $enough = ticks() + 150;
do
{
	foreach (1 .. 100)
	{
		$short->run('SELECT pg_sleep(0.002)');
		pause(3 + rand(3));
	}
} until ticks() >= $enough;
my $account = $observer->settled($short);
my $share = $account->{exec_time} / $account->{total_time};
$row = pool('short');
cmp_ok($row->{busy_avg}, '>', $share / 3,
	'short exchanges: busy_avg is not too low');
cmp_ok(
	$row->{busy_avg}, '<',
	$share + 0.5,
	'short exchanges: busy_avg is not too high');
is( "$row->{busy_p50} $row->{busy_p999}",
	'0 1',
	'short exchanges: busy_p50 is 0, and busy_p999 is 1');

# ---------------------------------------------------------------------------
# Windows
# ---------------------------------------------------------------------------

my @window = map { client('windows') } 1 .. 3;
$_->run('BEGIN') foreach @window;
await('windows', sub { $_->{busy} == 3 });
pause(200);
$_->run('COMMIT') foreach @window;
$_->finish foreach @window[ 1, 2 ];
$row = await('windows', sub { $_->{sessions} == 1 and $_->{busy} == 0 });
is( "$row->{busy_max} of $row->{sessions_max}",
	'3 of 3',
	'windows: busy_max is 3 after two have left');

# one that is younger than the window
my $window = pool('windows', q{pgnetlat_pools_last('15 min')});
is($window->{$_}, $row->{$_}, "window of 15 min: $_ is that since the start")
  foreach qw(datid usesysid sessions busy_max stats_since);

# one that has begun since
ok( $observer->poll(
		sub {
			$window = pool('windows', q{pgnetlat_pools_last('10 s')});
			$window->{busy_max} == 0;
		}),
	'window of 10 s: busy_max is 0 in the end');
cmp_ok($window->{window_time},
	'>=', 10_000, 'window of 10 s: window_time is at least that');
is($window->{$_}, 0, "window of 10 s: $_ is 0")
  foreach @QUANTILES, 'busy_avg';
is($window->{pool_size}, 1, 'window of 10 s: pool_size is 1');
is(pool('windows')->{busy_max},
	3, 'window of 10 s: busy_max since the start is still 3');

# ---------------------------------------------------------------------------
# After a restart
# ---------------------------------------------------------------------------

my $before = pool('windows');
$node->restart;
$observer = PgNetlat::Observer->connect($node);
my $after = await('windows', sub { 1 });
is($after->{$_}, $before->{$_}, "saved: $_ is the same")
  foreach qw(datid usesysid sessions_max busy_max stats_since);
is($after->{sessions}, 0, 'saved: no session is connected');
cmp_ok($after->{busy_avg}, '>', 0, 'saved: busy_avg is not zero');
cmp_ok(
	$after->{busy_avg}, '<=',
	$before->{busy_avg} * 1.001,
	'saved: busy_avg is not too high');
ok( $observer->poll(
		sub {
			$window = pool('windows', q{pgnetlat_pools_last('15 min')});
			defined $window->{busy_max};
		}),
	'saved: the pool is sampled again');
is($window->{$_}, 0, "saved: $_ of a window is 0")
  foreach qw(busy_avg busy_max);

# ---------------------------------------------------------------------------
# More pools than there is room for
# ---------------------------------------------------------------------------

sub sum_of
{
	my ($column, $condition) = @_;

	return $observer->value(
		"SELECT coalesce(sum($column), 0) FROM pgnetlat_pools WHERE $condition"
	);
}

# whoever has gone makes room: room for ten, and the observer has one of them
foreach my $number (1 .. 12)
{
	my $client = client("role_$number");

	$client->run('SELECT 1');
	$client->finish;
	await("role_$number", sub { $_->{sessions} == 0 });
}
is(sum_of(1, 'usename IS NOT NULL'),
	10, 'more pools than max_pools: ten have a row');
is(sum_of(1, q{datname = '(evicted)'}),
	1, 'more pools than max_pools: one row is of the evicted');
is(sum_of(1, 'datname IS NULL'),
	1, 'more pools than max_pools: one row is of all sessions');
is(sum_of('busy_p50', q{datname = '(evicted)'}) . '',
	'0', 'the evicted row has no distribution');
is( $observer->value(
		q{SELECT pool_size IS NULL AND busy_avg IS NULL AND sessions_max >= 1
		  FROM pgnetlat_pools WHERE datname = '(evicted)'}),
	't',
	'the evicted row counts its sessions');

# where all have sessions, there is none
my @crowd = map { client("role_$_") } 1 .. 12;
$_->run('BEGIN') foreach @crowd;
ok( $observer->poll(sub { all_sessions()->{busy} >= 12 }),
	'a full table: all twelve sessions are busy');
is(sum_of('sessions', 'usename IS NOT NULL'),
	10, 'a full table: ten sessions have a pool');
is(sum_of('sessions', q{datname = '(evicted)'}),
	3, 'a full table: three sessions are in the evicted row');
ok($observer->poll(sub { sum_of('busy', q{datname = '(evicted)'}) == 3 }),
	'a full table: the three in the evicted row are busy');
is(all_sessions()->{sessions},
	13, 'a full table: the row of all sessions has 13');
$_->run('COMMIT') foreach @crowd;
$_->finish foreach @crowd;
ok( $observer->poll(sub { all_sessions()->{sessions} == 1 }),
	'a full table: the sessions have disconnected');
ok($observer->poll(sub { sum_of('busy', q{datname = '(evicted)'}) == 0 }),
	'a full table: no evicted session is busy any more');

no_violations($observer);
$node->stop;
done_testing();
