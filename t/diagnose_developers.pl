
# Copyright (c) 2026, the pgnetlat authors

# Findings that developers need: commands that do no work, and pools without a free
# connection; over figures, and with real sessions that are cured.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Figures;
use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

my ($node, $observer) = start_node('developers');

use_figures($observer);

# The findings with this verdict.
sub verdicts
{
	my ($verdict, @rows) = @_;

	return grep { $_->{verdict} eq $verdict } @rows;
}

# ---------------------------------------------------------------------------
# Commands that do no work
# ---------------------------------------------------------------------------

# Of twenty requests of a session, so many do no work.
sub requests
{
	my ($useless, %row) = @_;
	my %app = (
		qw(rtt 2  requests 2000  transactions 1000  round_trips 2000  network_time 4000
		  exec_time 1000  send_time 1000),
		%row);

	group(%app);
	session(%app, pid => 200);
	add('recents',
		session => 200,
		queryid => $_ <= $useless ? 7 : 42,
		exec_time => $_ <= $useless ? 0.5 : 1,
		qw(send_time 0  network_time 2),
		overhead => $_ <= $useless ? 1 : 0) foreach 1 .. 20;
	return verdicts('session overhead', found());
}

my ($row) = requests(8);
is( $row->{evidence},
	'8 of the latest 20 requests only look after the session or test the connection. They take 2143 of 6000 ms of the time of all requests and round trips. Statement 7',
	'two in five: the evidence');
near(
	$row->{lost_sessions},
	6000 * 20 / 56 / 60000,
	'two in five: the part of their time is lost');
is(scalar(requests(2)), 0, 'one in ten: nothing is said');
is( scalar(
		requests(
			8, qw(network_time 200  rtt 0.1  exec_time 100  send_time 100))),
	0,
	'two in five of very little');

# ---------------------------------------------------------------------------
# Pools without a free connection
# ---------------------------------------------------------------------------

sub pool
{
	add('p',
		datid =>
		  '(SELECT oid FROM pg_database WHERE datname = current_database())',
		datname => "'postgres'",
		usesysid => "'shop'::regrole",
		usename => "'shop'",
		qw(sessions 10  busy_avg 9.8  busy_p50 10  busy_max 10  pool_size 10  window_time 60000),
		@_);
	return verdicts('pool exhausted', found());
}

$observer->run('CREATE ROLE shop LOGIN');
($row) = pool();
is( "$row->{severity}: $row->{evidence}",
	'note: All 10 connections of shop to postgres are busy for most of the time (9.80 on average)',
	'without a limit that is known, it is worth knowing');
is(scalar(pool(busy_p50 => 9)), 0, 'one connection is free: no finding');
is(scalar(pool(sessions => 4, busy_p50 => 4)),
	0, 'few connections: no finding');
$observer->run('ALTER ROLE shop CONNECTION LIMIT 10');
($row) = pool();
is( "$row->{severity}: $row->{evidence}",
	'loss: All 10 connections of shop to postgres are busy for most of the time (9.80 on average), and the role may have no more than 10',
	'at the limit of the role');

# ---------------------------------------------------------------------------
# Real sessions
# ---------------------------------------------------------------------------

# What a checkout from a pool may send, then the work itself.
sub transactions
{
	my ($name, @before) = @_;
	my $client =
	  PgNetlat::Client->connect($node, tcp => 1, application_name => $name);
	my $started = now();

	for (1 .. 400)
	{
		$client->run(@before, 'SELECT count(*) FROM pg_class');
	}
	return ($client, now() - $started);
}

$observer->run(
	q{SELECT pgnetlat_set_threshold('overhead_sessions', 0.0001)},
	q{SELECT pgnetlat_set_threshold('min_lost', 1)},
	q{SELECT pgnetlat_set_threshold('min_lost_sessions', 0)},
	'SELECT pgnetlat_reset()');
my ($sick, $took) = transactions(
	'tests each time',
	'SELECT 1', q{SET TimeZone = 'UTC'},
	'DISCARD TEMP');
my $found;
ok( $observer->poll(
		sub {
			($found) = grep { $_->{application_name} eq 'tests each time' }
			  verdicts('session overhead', $observer->findings);
			return $found;
		}),
	'a pool that tests and sets up each time');
like(
	$found->{evidence},
	qr/^1[78] of the latest 2[34] requests /,
	'three in four of its requests do no work');
my $account = $observer->settled($sick);
my ($cured, $cured_took) = transactions('works');
$observer->settled($cured);
is( scalar(
		grep { $_->{application_name} eq 'works' }
		  verdicts('session overhead', $observer->findings)),
	0,
	'the same without them has no such finding');
is($observer->account($cured->pid)->{requests} * 4,
	$account->{requests}, 'and three quarters of the requests are saved');
note("it took $took, then $cured_took ms");
$_->finish foreach $sick, $cured;

# as many connections as the role may have, all of them busy
$observer->run('ALTER ROLE shop CONNECTION LIMIT 5',
	'SELECT pgnetlat_reset()');
my @shop =
  map { PgNetlat::Client->connect($node, user => 'shop') } 1 .. 5;
$_->put(query('SELECT pg_sleep(3600)')) foreach @shop;
ok( $observer->poll(
		sub {
			($found) = verdicts('pool exhausted', $observer->findings);
			return $found && $found->{severity} eq 'loss';
		}),
	'a role whose connections are all busy');
like(
	$found->{evidence},
	qr/^All 5 connections of shop to postgres .* no more than 5$/,
	'the evidence has the limit');
foreach (@shop[ 0 .. 2 ])
{
	$_->cancel;
	$_->until('Z');
}
$observer->run('SELECT pgnetlat_reset()');
ok( $observer->poll(
		sub {
			$observer->value(
				"SELECT window_time FROM pgnetlat_pools_last() WHERE usename = 'shop'"
			) > 6000;
		}),
	'some seconds later');
is(scalar(verdicts('pool exhausted', $observer->findings)),
	0, 'with free connections, there is no such finding');
foreach (@shop[ 3 .. 4 ])
{
	$_->cancel;
	$_->until('Z');
}
$_->finish foreach @shop;

no_violations($observer);
$node->stop;
done_testing();
