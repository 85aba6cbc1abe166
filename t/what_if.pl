
# Copyright (c) 2026, the pgnetlat authors

# Predictions: what they start from is the account, what is not changed stays as
# it is, and what is changed goes the right way.  How good they are is measured
# in test/netlab.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('what_if', conf => <<'EOC');
pgnetlat.idle_threshold = '1h'
EOC
$observer->run('CREATE ROLE somebody LOGIN', 'CREATE ROLE other LOGIN');

my @measured = qw(round_trips server_time network_time client_time
  transaction_time throughput);
my @predicted = qw(predicted_transaction_time predicted_throughput
  predicted_throughput_low predicted_throughput_high change);

# The row of an application.
sub what_if
{
	my ($application, $arguments) = @_;
	my ($row) =
	  $observer->rows("SELECT * FROM pgnetlat_what_if("
		  . ($arguments // '')
		  . ") WHERE application_name = '$application'");

	return $row;
}

# Equal but for what floating point numbers, and an iteration, cost.
sub is_close
{
	my ($got, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok(abs($got - $expected) <= 1e-5 * abs($expected), $name)
	  or diag("$got instead of $expected");
	return;
}

sub in_order
{
	my ($row, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok( $row->{predicted_throughput_low} <= $row->{predicted_throughput}
		  && $row->{predicted_throughput} <=
		  $row->{predicted_throughput_high},
		"$name: low, likely, high");
	is_close(
		$row->{change},
		$row->{predicted_throughput} / $row->{throughput},
		"$name: the change");
	return;
}

# ---------------------------------------------------------------------------
# What was measured
# ---------------------------------------------------------------------------

# transactions of four round trips, and then nothing more happens to these
my %tcp = (tcp => 1, user => 'somebody');
my $app = PgNetlat::Client->connect($node, %tcp, application_name => 'app');
$app->run('BEGIN', 'SELECT 1', 'SELECT 2', 'COMMIT') for 1 .. 50;
$observer->settled($app);
my $pid = $app->pid;
$app->finish;
$observer->ended('app');

my ($account) = $observer->clients(q{application_name = 'app'});
my $row = what_if('app');
is($row->{$_}, $account->{$_}, "$_ as in pgnetlat_clients")
  foreach qw(datid datname usesysid usename application_name client_addr
  transactions requests);
is($row->{round_trips}, 4, 'round trips of a transaction');
is_close($row->{busy_sessions}, 1, 'of one session');
is_close(
	$row->{transaction_time},
	(   $account->{total_time} -
		  $account->{idle_time} -
		  $account->{pending_time}) / 50,
	'a transaction');
is_close(
	$row->{transaction_time},
	$row->{server_time} + $row->{network_time} + $row->{client_time},
	'consists of three parts');
is_close(
	$row->{network_time} / $row->{transaction_time},
	$account->{network_share},
	"with the account's network_share");
cmp_ok(
	$row->{server_time} / $row->{transaction_time},
	'>=',
	$account->{server_share} - 1e-6,
	'and its server_share, or more: the run queue');
is_close($row->{throughput} * $row->{transaction_time},
	1000, 'one after the other');

# ---------------------------------------------------------------------------
# What is not changed stays as it is
# ---------------------------------------------------------------------------

foreach my $same (
	'',
	'NULL, NULL, NULL, NULL, NULL',
	'batch => 1, server_speed => 1',
	'sessions => 1')
{
	my $is = what_if('app', $same);

	is_close(
		$is->{predicted_transaction_time},
		$row->{transaction_time},
		"($same): the time of a transaction");
	is_close($is->{$_}, $row->{throughput}, "($same): $_")
	  foreach qw(predicted_throughput predicted_throughput_low
	  predicted_throughput_high);
	is_close($is->{change}, 1, "($same): no change");
}

# ---------------------------------------------------------------------------
# What is changed goes the right way
# ---------------------------------------------------------------------------

my $last = what_if('app', 'rtt => 0');
cmp_ok(
	$last->{predicted_transaction_time},
	'<',
	$row->{transaction_time},
	'without a network: shorter');
foreach my $rtt (1, 5, 50, 500)
{
	my $far = what_if('app', "rtt => $rtt");

	is($far->{$_}, $row->{$_}, "rtt $rtt: $_ as measured") foreach @measured;
	in_order($far, "rtt $rtt");
	cmp_ok(
		$far->{predicted_throughput},
		'<',
		$last->{predicted_throughput},
		"rtt $rtt: throughput falls");
	cmp_ok($far->{predicted_transaction_time},
		'>=', 4 * $rtt, "rtt $rtt: four round trips");

	# of what remains, caches that are cold may double or triple some
	cmp_ok(
		$far->{predicted_transaction_time},
		'<',
		4 * ($rtt + 1) + 10 * ($row->{server_time} + $row->{client_time}),
		"rtt $rtt: and not much more");
	$last = $far;
}

my $one_by_one = what_if('app', 'rtt => 50');
my $together = what_if('app', 'rtt => 50, batch => 2');
in_order($together, 'batch');
cmp_ok(
	$together->{change}, '>',
	1.8 * $one_by_one->{change},
	'two statements in a round trip');
cmp_ok($together->{change}, '<', 3 * $one_by_one->{change}, 'are no miracle');
my $fast = what_if('app', 'server_speed => 1000');
in_order($fast, 'server_speed');
cmp_ok($fast->{change}, '>=', 1, 'a faster server');
my $many = what_if('app', 'sessions => 1000');
in_order($many, 'sessions');
cmp_ok($many->{predicted_throughput},
	'>=', $row->{throughput}, 'more sessions');
cmp_ok(
	$many->{predicted_throughput},
	'<=',
	1000 * $row->{throughput} * 1.00001,
	'each of which does no more');

# what no faster processor helps
my $held = PgNetlat::Client->connect($node, %tcp, application_name => 'held');
$held->run('SELECT pg_sleep(0.02)') for 1 .. 30;
$observer->settled($held);
$fast = what_if('held', 'server_speed => 1000');
cmp_ok($fast->{predicted_transaction_time},
	'>', 15, 'pg_sleep() sleeps as long on a faster server');
cmp_ok(
	$fast->{predicted_throughput_high},
	'>',
	3 * $fast->{throughput},
	'but nobody knows for whom it waits');

# ---------------------------------------------------------------------------
# Where there is no network, and too little to say anything
# ---------------------------------------------------------------------------

my $local = PgNetlat::Client->connect($node, application_name => 'local');
$local->run('SELECT 1') for 1 .. 20;
$observer->settled($local);
$row = what_if('local', 'rtt => 10');
is($row->{network_time}, 0, 'a Unix-domain socket has no network');
cmp_ok($row->{predicted_transaction_time},
	'>=', 10, 'but its clients may move away');

my $few = PgNetlat::Client->connect($node, %tcp, application_name => 'few');
$few->run('SELECT 1') for 1 .. 19;
$observer->settled($few);
$row = what_if('few');
is($row->{transactions}, 19, 'a few transactions');
cmp_ok($row->{transaction_time}, '>', 0, 'are shown');
is($row->{$_}, undef, "but predict nothing: $_") foreach @predicted;
$few->run('SELECT 1');
$observer->settled($few);
cmp_ok(what_if('few')->{$_}, '>', 0, "one more, and they do: $_")
  foreach @predicted;

# in one transaction: per request
my $open = PgNetlat::Client->connect($node, application_name => 'open');
$open->run('BEGIN', ('SELECT 1') x 24);
$observer->settled($open);
$row = what_if('open');
is($row->{transactions}, 0, 'a transaction in progress');
is($row->{requests}, 25, 'with requests');
is($row->{round_trips}, 1, 'then figures are per request');
cmp_ok($row->{predicted_throughput}, '>', 0, 'which can be predicted');

# nothing at all
my $none = PgNetlat::Client->connect($node, application_name => 'none');
$observer->settled($none, 0);
$row = what_if('none');
is($row->{requests}, 0, 'no request');
is($row->{$_}, undef, "and nothing to show: $_")
  foreach 'busy_sessions', @measured, @predicted;

# nobody asks for the round trip
my $unknown = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	application_name => 'unknown',
	options => '-c pgnetlat.rtt_interval=-1');
$unknown->run('SELECT 1') for 1 .. 20;
$observer->settled($unknown);
cmp_ok(what_if('unknown')->{predicted_throughput},
	'>', 0, 'with an unknown round trip');
is(what_if('unknown', 'rtt => 1')->{predicted_throughput},
	undef, 'another cannot be predicted');

# ---------------------------------------------------------------------------
# How many sessions there were, and for how long
# ---------------------------------------------------------------------------

# two at a time, of which each thinks in a transaction; then nobody does anything
my $began = now();
my @pair =
  map { PgNetlat::Client->connect($node, application_name => 'pair') } 1 .. 2;
$_->run('BEGIN') foreach @pair;
my $overlap = pause(1000);
$_->run('COMMIT')      foreach @pair;
$observer->settled($_) foreach @pair;
$_->finish             foreach @pair;
$observer->ended('pair', 2);
my $lasted = now() - $began;
pause(500);
$row = what_if('pair');
cmp_ok(
	$row->{busy_sessions}, '>',
	1.8 * $overlap / $lasted,
	'two sessions at once');
cmp_ok($row->{busy_sessions}, '<=', 2.0001, 'and no more');

# two, one after the other
my $busy = 0;
foreach (1 .. 2)
{
	my $connected = now();
	my $single =
	  PgNetlat::Client->connect($node, application_name => 'single');
	$single->run('BEGIN');
	pause(500);
	$single->run('COMMIT');
	$observer->settled($single);
	$single->finish;
	$observer->ended('single', $_);
	$busy += now() - $connected;
	pause(200);
}
$row = what_if('single');
cmp_ok($row->{busy_sessions}, '<', 1.1, 'one at a time');
cmp_ok(
	$row->{throughput}, '>',
	2000 / $busy / 1.1,
	'which is not slower for the time in between');

# ---------------------------------------------------------------------------
# One session
# ---------------------------------------------------------------------------

my ($same) =
  $observer->rows(
	"SELECT * FROM pgnetlat_what_if_session(" . $local->pid . ', rtt => 10)');
$row = what_if('local', 'rtt => 10');
is($same->{$_}, $row->{$_}, "as its group: $_")
  foreach qw(transactions requests round_trips);
in_order($same, 'session');
cmp_ok($same->{predicted_transaction_time},
	'>=', 10, 'is predicted likewise');
is(scalar($observer->rows("SELECT * FROM pgnetlat_what_if_session($pid)")),
	0, 'none that has ended');
is(scalar($observer->rows('SELECT * FROM pgnetlat_what_if_session(NULL)')),
	0, 'none without a process ID');

# who may look: others see sums by client, without address, but no session
sub seen_by
{
	my ($role, $query) = @_;

	return $node->safe_psql('postgres', "SET ROLE $role; $query");
}
my $session =
  'SELECT count(*) FROM pgnetlat_what_if_session(' . $held->pid . ')';
my $address =
  q{SELECT count(*), count(client_addr), count(throughput) > 0 FROM pgnetlat_what_if()
	 WHERE application_name = 'held'};
is(seen_by('somebody', $session), 1, 'a role sees its own session');
is(seen_by('other', $session), 0, 'and nobody else');
is(seen_by('pg_read_all_stats', $session),
	1, 'except for whom it is given to');
is(seen_by('somebody', $address), '1|1|t', 'a role sees its own address');
is(seen_by('other', $address), '1|0|t', 'others only sums');

no_violations($observer);
$node->stop;
done_testing();
