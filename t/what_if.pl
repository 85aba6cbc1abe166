
# Copyright (c) 2026, the pgnetlat authors

# Predictions: the model's arithmetic, with given and with recorded figures, and with
# an account as the starting point.  test/netlab and test/experiments measure how good
# predictions are.

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

# Equal but for what floating point numbers cost.
sub is_close
{
	my ($got, $expected, $name, $tolerance) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$tolerance //= 1e-9;
	ok(defined $got && abs($got - $expected) <= $tolerance * abs($expected),
		$name)
	  or diag(($got // 'NULL') . " instead of $expected");
	return;
}

# ---------------------------------------------------------------------------
# The model
# ---------------------------------------------------------------------------

# What the model says of a transaction with these figures, after a change.
sub predict
{
	my ($figures, %change) = @_;
	my %arguments = (processors => 4, %$figures, %change);
	my $arguments =
	  join(', ', map { "$_ => $arguments{$_}" } sort keys %arguments);
	my ($row) = $observer->rows("SELECT * FROM pgnetlat_predict($arguments)");

	if (defined $row)
	{
		local $Test::Builder::Level = $Test::Builder::Level + 1;

		ok( $row->{throughput_low} <= $row->{throughput}
			  && $row->{throughput} <= $row->{throughput_high},
			'a prediction lies between its bounds') or diag($arguments);
	}
	return $row;
}

# a sum of its parts, of which none is a queue
my %plain = (
	transaction_time => 31.6,
	busy_sessions => 1,
	statements => 6,
	round_trips => 6,
	rtt => 5,
	network_time => 30,
	in_xact_wait_time => 26,
	client_time => 1,
	cpu_time => 0.5,
	io_time => 0.1);

# 16 sessions update one row at 5 ms
my %one_row = (
	transaction_time => 203.6,
	busy_sessions => 16,
	statements => 3,
	round_trips => 3,
	rtt => 5,
	network_time => 15,
	in_xact_wait_time => 10,
	cpu_time => 1.3,
	lock_time => 187.3);

# 4 sessions read 50 kB over 20 ms
my %large = (
	transaction_time => 60.6,
	busy_sessions => 4,
	statements => 1,
	round_trips => 1,
	rtt => 20,
	network_time => 59.5,
	stream_time => 39.5,
	client_time => 0.3,
	cpu_time => 0.8);

# two processors, for which 16 sessions wait
my %saturated = (
	transaction_time => 8,
	busy_sessions => 16,
	processors => 2,
	statements => 1,
	round_trips => 1,
	rtt => 0.5,
	network_time => 0.5,
	cpu_time => 1,
	queue_time => 6.5);

foreach my $loads (
	[ 'one by one', \%plain ],
	[ 'one row', \%one_row ],
	[ 'large results', \%large ],
	[ 'saturated', \%saturated ])
{
	my ($name, $load) = @$loads;
	my $throughput =
	  1000 * $load->{busy_sessions} / $load->{transaction_time};

	foreach my $same (
		{},
		{ new_rtt => $load->{rtt} },
		{ new_batch => 1, new_speed => 1 },
		{ new_sessions => $load->{busy_sessions} })
	{
		my $row = predict($load, %$same);

		is_close(
			$row->{predicted_time},
			$load->{transaction_time},
			"$name: without a change, the time is the same");
		is_close($row->{$_}, $throughput,
			"$name: without a change, $_ is the same")
		  foreach qw(throughput throughput_low throughput_high);
	}
	my $near = predict($load, new_rtt => $load->{rtt} / 10);
	my $far = predict($load, new_rtt => $load->{rtt} * 10);
	cmp_ok($near->{throughput}, '>', $throughput, "$name: nearer is faster")
	  unless $name eq 'saturated';
	cmp_ok($far->{throughput}, '<', $throughput, "$name: farther is slower");
	cmp_ok(
		$far->{predicted_time},
		'>=',
		$load->{round_trips} * $load->{rtt} * 10,
		"$name: farther is not faster than its path");
}

is_close(
	predict(\%plain, new_rtt => 50)->{predicted_time}, 301.6,
	'six round trips at 50 ms: the time is predicted', 0.005);
is_close(
	predict(\%plain, new_rtt => 0.5)->{predicted_time}, 4.5,
	'six round trips at 0.5 ms: the time is predicted', 0.15);
is_close(
	predict(\%one_row, new_rtt => 0.5)->{throughput}, 454,
	'waits for locks are shorter if their holders are nearer', 0.1);
cmp_ok(predict(\%one_row, new_rtt => 0.5)->{throughput_low},
	'<', 100,
	'the lower bound allows for holders that are as far away as before');
is_close(
	predict(\%large, new_rtt => 2)->{throughput}, 580,
	'a large result takes several round trips', 0.1);
cmp_ok(predict(\%large, new_rtt => 2)->{throughput_low},
	'<', 100,
	'the lower bound allows for a large result limited by bandwidth');

# one statement, committed by itself, holds its locks only while it executes
my %autocommit = (
	%one_row,
	transaction_time => 10,
	statements => 1,
	round_trips => 1,
	network_time => 5,
	in_xact_wait_time => 0,
	cpu_time => 0.3,
	lock_time => 4.7);
is_close(
	predict(\%autocommit, new_rtt => 5.5)->{throughput}, 1600,
	'locks held without a round trip: a longer path prolongs no wait', 0.05);
cmp_ok(predict(\%autocommit, new_rtt => 0)->{throughput},
	'<', 4500,
	'locks held without a round trip: a shorter path shortens no wait');

# a saturated server
is_close(
	predict(\%saturated, new_speed => 2)->{throughput}, 4000,
	'twice the speed of busy processors doubles throughput', 0.1);
cmp_ok(predict(\%saturated, new_sessions => 160)->{throughput},
	'<=', 2000, 'more sessions than processors take turns');
cmp_ok(predict(\%saturated, new_rtt => 0)->{throughput},
	'<=', 2100,
	'more sessions than processors take turns without a network, too');
is_close(
	predict(\%saturated, new_rtt => 100)->{throughput},
	16 / 101 * 1000,
	'far away, no session waits for a processor', 0.01);
is_close(
	predict(\%plain, new_sessions => 10)->{throughput},
	10 * 1000 / 31.6,
	'ten sessions do ten times as much');
cmp_ok(predict(\%plain, new_sessions => 200000)->{throughput},
	'<=', 4 / 0.0005,
	'more sessions gain nothing once the processors are busy');
is_close(
	predict(\%one_row, new_sessions => 1)->{throughput_high},
	1000 / 16.3,
	'one session alone does not wait for locks', 0.06);

# TPC-B by 16 clients on two processors, measured at 20 ms; at 0.6 ms, it was 1,920 a
# second
my %tpcb = (
	transaction_time => 147,
	busy_sessions => 16,
	processors => 2,
	statements => 7,
	round_trips => 7,
	rtt => 20,
	network_time => 140,
	in_xact_wait_time => 123,
	client_time => 1.98,
	cpu_time => 0.111,
	io_time => 0.05,
	other_time => 0.007,
	lock_time => 3.2,
	queue_time => 1.34);
my $near = predict(\%tpcb, new_rtt => 0.6);
is_close($near->{throughput}, 1920,
	'nearer, until processors are the limit: throughput is predicted', 0.2);
cmp_ok($near->{throughput_low},
	'<', 1920,
	'nearer, until processors are the limit: the lower bound holds');

# 64 clients read one row each, measured at 10 ms; at 0.3 ms, it was 47,800 a second
my %one_read = (
	transaction_time => 10.3,
	busy_sessions => 64,
	processors => 2,
	statements => 1,
	round_trips => 1,
	rtt => 10,
	network_time => 10,
	client_time => 0.17,
	cpu_time => 0.01,
	queue_time => 0.12);
is_close(predict(\%one_read, new_rtt => 0.3)->{throughput},
	47_800,
	'short requests: to read them and to wake up takes a processor, too',
	0.1);

# Turns that are all of the processors' time do not get shorter with the path.
my %turns = (
	transaction_time => 25,
	busy_sessions => 64,
	processors => 2,
	statements => 1,
	round_trips => 1,
	rtt => 20,
	network_time => 20,
	cpu_time => 0.5,
	queue_time => 4.5);
cmp_ok(predict(\%turns, new_rtt => 0.2)->{throughput},
	'<=', 2 / 0.0005,
	'no warmth is gained on demand where processors are the limit');

# 50 kB over 20 ms; at 2 ms, it was 643 a second
my %streams = (
	transaction_time => 42.4,
	busy_sessions => 4,
	statements => 1,
	round_trips => 1,
	rtt => 20,
	network_time => 39,
	stream_time => 19,
	client_time => 3,
	cpu_time => 0.4);
cmp_ok(predict(\%streams, new_rtt => 2)->{throughput_high},
	'>', 643, 'the upper bound allows for streams that scale fully');

# 4 sessions that do not wait for one another; 16 did 3,003 a second
my $more = predict(
	{
		transaction_time => 5.41,
		busy_sessions => 4,
		processors => 2,
		statements => 1,
		round_trips => 1,
		rtt => 5.04,
		network_time => 5.05,
		client_time => 0.207,
		cpu_time => 0.104,
		queue_time => 0.049
	},
	new_sessions => 16);
cmp_ok($more->{throughput_low},
	'<', 3003, 'more sessions: the lower bound holds');
cmp_ok($more->{throughput_high},
	'>', 3003, 'more sessions: the upper bound is above the prediction');

# statements that share round trips
my %batch = (
	transaction_time => 225,
	busy_sessions => 1,
	statements => 22,
	round_trips => 22,
	rtt => 10,
	network_time => 220,
	in_xact_wait_time => 210,
	client_time => 2,
	cpu_time => 3);
is_close(
	predict(\%batch, new_batch => 20)->{predicted_time}, 22.5,
	'22 statements by 20 take two round trips', 0.1);
is_close(
	predict(\%batch, new_batch => 22)->{predicted_time}, 12.5,
	'22 statements by 22 take one round trip', 0.1);
is_close(
	predict(
		{
			transaction_time => 10.2,
			busy_sessions => 1,
			statements => 1,
			round_trips => 1,
			rtt => 10,
			network_time => 10,
			client_time => 0.1,
			cpu_time => 0.1
		},
		new_batch => 10)->{predicted_time},
	1.1,
	'transactions of one statement share a round trip',
	0.1);
is_close(predict({ %batch, statements => 0 })->{predicted_time},
	225, 'a transaction without statements: the time is the same');
is(predict({ %batch, statements => 0 }, new_batch => 2),
	undef,
	'a transaction without statements: nothing can share a round trip');

# there is an answer for any figures
is( $observer->value(
		q{SELECT count(*) FILTER (WHERE p.throughput_low > 0 AND p.throughput_low <= p.throughput
									 AND p.throughput <= p.throughput_high) = count(*)
			FROM (VALUES (0.0), (0.01), (1), (100)) n(network), (VALUES (0.0), (0.001), (1), (100)) c(client),
				 (VALUES (0.0), (0.001), (1)) e(cpu), (VALUES (0.0), (0.01), (50)) l(lock), (VALUES (0.0), (0.01), (50)) q(queue),
				 (VALUES (0.1), (1), (9)) t(trips), (VALUES (0.0), (0.5), (500)) r(rtt), (VALUES (0.02), (1), (100)) s(sessions),
				 pgnetlat_predict(network + client + cpu + lock + queue + 0.001, sessions, 4, trips, trips, network / trips,
					network, 0, client, client / 2, cpu, 0, 0, lock, queue, new_rtt => rtt) p}
	),
	't',
	'any figures have a prediction between its bounds');

# other extremes
is_close(
	predict(
		{
			transaction_time => 1,
			busy_sessions => 1,
			statements => 1,
			round_trips => 1,
			client_time => 0.6,
			cpu_time => 0.4
		},
		new_rtt => 10)->{predicted_time},
	11,
	"a client that moves away from the server's host gets a round trip",
	0.02);
is_close(
	predict(
		{
			transaction_time => 2,
			busy_sessions => 3,
			statements => 0,
			round_trips => 0
		},
		new_rtt => 10)->{predicted_time},
	2,
	'without a round trip, its length changes nothing');
foreach my $change (
	'new_rtt -1',
	"new_rtt 'NaN'",
	"new_rtt 'Infinity'",
	'new_batch 0.5',
	'new_speed 0',
	"new_speed '-Infinity'",
	'new_sessions 0')
{
	is(predict(\%plain, split(' ', $change)), undef,
		"$change: no prediction");
}
is(predict({ %plain, rtt => 'NULL' }, new_rtt => 1),
	undef, 'unknown round trip: no prediction for another one');
is_close(predict({ %plain, rtt => 'NULL' }, new_speed => 1)->{predicted_time},
	31.6, 'unknown round trip: other changes are predicted');

# ---------------------------------------------------------------------------
# Recorded loads
# ---------------------------------------------------------------------------

# what_if.tsv: pgbench on two processors over paths of other lengths ("path", and
# the round trip that a lone connection saw there) and with other numbers of
# clients, server and clients at real-time priority: transactions per second as
# measured by the client, and the account's mean transaction.  Each run is predicted
# from each other one of the same load.  A change of the model that makes it worse
# shows here.
$node->safe_psql('postgres', <<"EOC");
CREATE TABLE recorded AS
	SELECT '' AS load, 1::float8 AS clients, 1::float8 AS path, 1::float8 AS ping, 1::float8 AS measured,
		   m.transaction_time, m.busy_sessions, m.processors, m.statements, m.round_trips, m.rtt,
		   m.network_time, m.stream_time, m.client_time, m.in_xact_wait_time,
		   m.cpu_time, m.io_time, m.other_time, m.lock_time, m.queue_time
	  FROM pgnetlat_mean_transactions(NULL, '1 min') m LIMIT 0;
\\copy recorded FROM '$FindBin::RealBin/what_if.tsv' WITH (FORMAT csv, DELIMITER E'\t', HEADER)
EOC
my $recorded = <<'EOC';
SELECT change, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY error) AS median,
	   percentile_cont(0.9) WITHIN GROUP (ORDER BY error) AS ninth, max(off) AS highest, avg(contained::int) AS within
  FROM (SELECT CASE WHEN b.path < a.path THEN 'shorter path'
					WHEN b.path > a.path THEN 'longer path'
					WHEN b.clients > a.clients THEN 'more sessions'
					ELSE 'fewer sessions' END AS change,
			   abs(p.throughput / b.measured - 1) AS error, p.throughput / b.measured - 1 AS off,
			   b.measured BETWEEN p.throughput_low AND p.throughput_high AS contained
		  FROM recorded a
		  JOIN recorded b ON a.load = b.load AND (a.clients = b.clients) <> (a.path = b.path),
			   pgnetlat_predict(a.transaction_time, a.busy_sessions, a.processors, a.statements,
				a.round_trips, a.rtt, a.network_time, a.stream_time, a.client_time, a.in_xact_wait_time,
				a.cpu_time, a.io_time, a.other_time, a.lock_time, a.queue_time,
				new_rtt => CASE WHEN a.path <> b.path THEN b.ping END,
				new_sessions => CASE WHEN a.clients <> b.clients THEN b.clients END) p) x
 GROUP BY change
EOC
my %worst = (
	'shorter path' => [ 0.15, 0.46, 1.91, 0.78 ],
	'longer path' => [ 0.02, 0.20, 0.79, 0.84 ],
	'more sessions' => [ 0.08, 0.32, 0.60, 0.83 ],
	'fewer sessions' => [ 0.04, 0.20, 0.21, 0.69 ]);
foreach my $row ($observer->rows($recorded))
{
	my ($median, $ninth, $highest, $within) =
	  @{ delete $worst{ $row->{change} } };
	my $what = sprintf '%s, %d recorded', @$row{qw(change count)};

	note(
		sprintf
		  '%s: half within %.1f %%, nine of ten within %.0f %%, none more than %.0f %% too high, %.0f %% of the truths within bounds',
		$what,
		map { 100 * $row->{$_} } qw(median ninth highest within));
	cmp_ok($row->{median}, '<=', $median, "$what: half are predicted well");
	cmp_ok($row->{ninth}, '<=', $ninth,
		"$what: nine of ten are predicted somewhat");
	cmp_ok($row->{highest}, '<=', $highest,
		"$what: none is higher than it was");
	cmp_ok($row->{within}, '>=', $within,
		"$what: bounds hold as often as measured");
}
is_deeply(\%worst, {}, 'each change has been recorded');

# ---------------------------------------------------------------------------
# What it starts from
# ---------------------------------------------------------------------------

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
is($row->{$_}, $account->{$_}, "$_ is as in pgnetlat_clients")
  foreach qw(datid datname usesysid usename application_name client_addr
  transactions requests);
is($row->{round_trips}, 4, 'a transaction has four round trips');
is_close(
	$row->{transaction_time},
	(   $account->{total_time} -
		  $account->{idle_time} -
		  $account->{pending_time}) / 50,
	'transaction_time is busy time by transaction',
	1e-6);
is_close(
	$row->{transaction_time},
	$row->{server_time} + $row->{network_time} + $row->{client_time},
	'a transaction\'s time consists of three parts',
	1e-6);
is_close(
	$row->{"${_}_time"} / $row->{transaction_time},
	$account->{"${_}_share"},
	"the ${_} part of a transaction is the account's ${_}_share", 1e-6
) foreach qw(server network client);
is_close(
	$row->{throughput} * $row->{transaction_time},
	1000 * $row->{busy_sessions},
	'throughput by transaction_time is busy_sessions', 1e-6);

my $same = what_if('app', 'NULL, 1, 1, NULL');
is_close(
	$same->{predicted_transaction_time},
	$same->{transaction_time},
	'without a change, the predicted time is the measured one');
is_close($same->{$_}, $same->{throughput},
	"without a change, $_ is the measured throughput")
  foreach qw(predicted_throughput predicted_throughput_low
  predicted_throughput_high);
is_close($same->{change}, 1, 'without a change, change is 1');
my $far = what_if('app', 'rtt => 50');
is_close($far->{$_}, $row->{$_},
	"with another round trip, $_ is as measured", 1e-6)
  foreach grep { $_ ne 'throughput' } @measured;
my $local_time = $row->{server_time} + $row->{client_time};
is_close(
	$far->{predicted_transaction_time},
	200 + $local_time,
	'with another round trip, the time is that of four', 0.1);
is_close(
	$far->{change} * $far->{predicted_transaction_time},
	$far->{transaction_time},
	'with another round trip, change is the ratio of the times');
is_close(
	what_if('app', 'rtt => 50, batch => 4')->{predicted_transaction_time},
	50 + $local_time,
	'with batch, the time is that of one round trip', 0.1);

# after a reset, a window does not begin before what is in it, nor later
my $again = PgNetlat::Client->connect($node, application_name => 'again');
foreach (1 .. 4)
{
	my @at = (now());
	$observer->run('SELECT pgnetlat_reset()');
	push @at, now();
	pause(500);
	$again->run('SELECT 1') for 1 .. 20;
	push @at, now();
	$again->run('SELECT 1');
	push @at, now();
	pause(100);
	push @at, now();
	my $busy = what_if('again')->{busy_sessions} // 0;
	push @at, now();

	# since the reset until the last response, of the time until it was asked
	cmp_ok(
		$busy, '>=',
		($at[2] - $at[1]) / ($at[5] - $at[0]) - 0.1,
		'busy_sessions has what was done since the reset');
	cmp_ok(
		$busy, '<=',
		($at[3] - $at[0]) / ($at[4] - $at[1]) + 0.1,
		'busy_sessions has nothing from before the reset');
}
$again->finish;

# what no faster processor helps
my $held = PgNetlat::Client->connect($node, %tcp, application_name => 'held');
$held->run('SELECT pg_sleep(0.02)') for 1 .. 30;
$observer->settled($held);
my $fast = what_if('held', 'server_speed => 1000');
cmp_ok($fast->{predicted_transaction_time},
	'>', 15, 'pg_sleep() sleeps as long on a faster server');

# of the time, 20 ms are pg_sleep()'s
my $factor =
  $fast->{transaction_time} / ($fast->{transaction_time} - 18);
$factor = 3 if $factor > 3;
cmp_ok(
	$fast->{predicted_throughput_high},
	'>',
	$factor * $fast->{throughput},
	'the upper bound allows for a faster pg_sleep()');

# ---------------------------------------------------------------------------
# Without a network, and with too few transactions
# ---------------------------------------------------------------------------

my $local = PgNetlat::Client->connect($node, application_name => 'local');
$local->run('SELECT 1') for 1 .. 20;
$observer->settled($local);
$row = what_if('local', 'rtt => 10');
is($row->{network_time}, 0, 'a Unix-domain socket: network_time is 0');
cmp_ok($row->{predicted_transaction_time},
	'>=', 10, 'a Unix-domain socket: predicted for a client that moves away');

my $few = PgNetlat::Client->connect($node, %tcp, application_name => 'few');
$few->run('SELECT 1') for 1 .. 19;
$observer->settled($few);
$row = what_if('few');
is($row->{transactions}, 19, '19 transactions are counted');
cmp_ok($row->{transaction_time}, '>', 0, '19 transactions have a time');
is($row->{$_}, undef, "19 transactions have no $_") foreach @predicted;
$few->run('SELECT 1');
$observer->settled($few);
cmp_ok(what_if('few')->{$_}, '>', 0, "20 transactions have $_")
  foreach @predicted;

# in one transaction: per request
my $open = PgNetlat::Client->connect($node, application_name => 'open');
$open->run('BEGIN', ('SELECT 1') x 24);
$observer->settled($open);
$row = what_if('open');
is($row->{transactions}, 0,
	'a transaction in progress: no transaction is counted');
is($row->{requests}, 25, 'a transaction in progress: requests are counted');
is($row->{round_trips}, 1,
	'a transaction in progress: figures are per request');
cmp_ok($row->{predicted_throughput},
	'>', 0, 'a transaction in progress: predicted per request');

# nothing at all
my $none = PgNetlat::Client->connect($node, application_name => 'none');
$observer->settled($none, 0);
$row = what_if('none');
is($row->{requests}, 0, 'no transaction: no request is counted');
is($row->{$_}, undef, "no transaction: $_ is NULL")
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
	'>', 0, 'unknown round trip of a client: throughput is predicted');
is(what_if('unknown', 'rtt => 1')->{predicted_throughput},
	undef, 'unknown round trip of a client: no prediction for another one');

# ---------------------------------------------------------------------------
# One session
# ---------------------------------------------------------------------------

($same) =
  $observer->rows(
	"SELECT * FROM pgnetlat_what_if_session(" . $local->pid . ', rtt => 10)');
$row = what_if('local', 'rtt => 10');
is($same->{$_}, $row->{$_}, "one session: $_ is that of its group")
  foreach qw(transactions requests round_trips);
cmp_ok($same->{predicted_transaction_time},
	'>=', 10, 'one session: a path of 10 ms is predicted');
is(scalar($observer->rows("SELECT * FROM pgnetlat_what_if_session($pid)")),
	0, 'one session: there is no row if it has ended');
is(scalar($observer->rows('SELECT * FROM pgnetlat_what_if_session(NULL)')),
	0, 'one session: there is no row without a process ID');
is( scalar(
		$observer->rows(
			"SELECT * FROM pgnetlat_what_if$_, duration => NULL)")),
	0,
	'no row without a duration, as elsewhere'
) foreach '(1', "_session(" . $local->pid;

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
is(seen_by('other', $session), 0, 'a role sees no other session');
is(seen_by('pg_read_all_stats', $session),
	1, 'pg_read_all_stats sees other roles\' sessions');
is(seen_by('somebody', $address), '1|1|t', 'a role sees its own address');
is(seen_by('other', $address),
	'1|0|f', 'another role sees neither address nor figures');

no_violations($observer);
$node->stop;
done_testing();
