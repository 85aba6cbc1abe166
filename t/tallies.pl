
# Copyright (c) 2026, the pgnetlat authors

# Tallies: nothing is lost or counted twice, however many processes take a
# session's tally at the same time, and however many statements the session
# uses.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('tallies', conf => "pgnetlat.idle_threshold = '1h'\n");
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');

# Statements that differ in the types of their columns: one bit each.
sub different
{
	my ($number) = @_;
	my $rows = $number % 5 + 1;

	return
		'SELECT '
	  . join(', ', map { $number >> $_ & 1 ? "'a'" : '1' } 0 .. 7)
	  . " FROM generate_series(1, $rows)";
}

# A script for pgbench.
sub script
{
	my ($name, @lines) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir . "/$name.sql";

	append_to_file($file, join(";\n", @lines) . ";\n");
	return $file;
}

# Starts pgbench; so many clients run so many transactions each.
sub pgbench
{
	my ($name, $clients, $transactions, $file) = @_;
	my ($out, $err) = ('', '');
	local $ENV{PGAPPNAME} = $name;
	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;

	return IPC::Run::start(
		[
			'pgbench', '-n', '-M', 'prepared',
			'-c', $clients, '-t', $transactions,
			'-f', $file, 'postgres'
		],
		'<',
		\undef,
		'>',
		\$out,
		'2>',
		\$err);
}

my $reading = script(
	'reading',
	'SELECT count(*) FROM pgnetlat_statements',
	'SELECT count(*) FROM pgnetlat_histogram');

# Sessions in turn use more statements than a tally has places, in a transaction
# block, twice each; others read all the time.
foreach my $many (10, 60)
{
	my ($clients, $transactions) = (4, 40);
	my $total = 2 * $clients * $transactions;
	my @statements = map { different($_) } 0 .. $many - 1;
	my $writing =
	  script("writing$many", 'BEGIN', @statements, @statements, 'COMMIT');

	$observer->run('SELECT pgnetlat_reset()');
	my $writers = pgbench("many$many", $clients, $transactions, $writing);
	my $readers = pgbench("readers$many", 2, 150, $reading);
	ok($_->finish, "$many statements: pgbench has run")
	  foreach $writers, $readers;

	my $sum = $observer->ended("many$many", $clients);
	my ($found) = $observer->rows(
		"SELECT count(*) AS statements, sum(calls) AS calls, sum(rows) AS rows,
				sum(repeats) AS repeats
		 FROM pgnetlat_statements WHERE calls = $total");
	my $rows = 0;
	$rows += $total * ($_ % 5 + 1) foreach 0 .. $many - 1;
	is($found->{statements}, $many,
		"$many statements: each has the right number of calls");
	is( $found->{calls},
		$many * $total,
		"$many statements: the sum of calls is exact");
	is($found->{rows}, $rows, "$many statements: the sum of rows is exact");

	# a statement that loses its entry is no longer known
	cmp_ok(
		$found->{repeats},
		$many == 10 ? '==' : '<=',
		$many * $total / 2,
		"$many statements: repeats are the second calls");

	my ($exchange) = $observer->rows(
		"SELECT count FROM pgnetlat_histogram WHERE application_name = 'many$many'
		 AND metric = 'request' AND le = '+Inf'");
	is($exchange->{count}, $sum->{requests},
		"$many statements: every exchange is in the histogram");
	is( $sum->{requests},
		$clients * ($transactions * (2 * $many + 2) + 2 * $many + 2),
		"$many statements: every exchange is counted, those that prepare, too"
	);

	my ($waits) = $observer->rows(
		"SELECT sum(count) FILTER (WHERE metric = 'wait') AS waits,
				sum(count) FILTER (WHERE metric = 'client') AS client,
				sum(count) FILTER (WHERE metric = 'network') AS network
		 FROM pgnetlat_histogram WHERE application_name = 'many$many' AND le = '+Inf'"
	);
	is($waits->{client}, $waits->{waits},
		"$many statements: each wait is in the client histogram");
	is($waits->{network}, $waits->{waits},
		"$many statements: each wait is in the network histogram");
}

# Nothing is stale: what a session has done is in the table when it waits for
# its next request, however many times the tally was taken before.
my $client = PgNetlat::Client->connect($node, application_name => 'live');
my $calls = sub {
	$observer->value(
		"SELECT coalesce(sum(calls), 0) FROM pgnetlat_statements WHERE rows = 23 * calls AND calls > 0"
	);
};
my $seen = sub {
	my ($count) = @_;

	# the response is with the client before the session has published that
	return $observer->poll(sub { $calls->() == $count });
};
foreach my $count (1 .. 20)
{
	$client->run('SELECT generate_series(1, 23)');
	ok($seen->($count),
		"$count executions are shown without another request");
}

# A reset empties the tally of a session that waits, as well as one at work.
$client->run('SELECT generate_series(1, 23)') foreach 1 .. 5;
$observer->settled($client->pid, 25);
$observer->run('SELECT pgnetlat_reset()');
is($calls->(), 0, 'a reset clears a tally that was not taken');
$client->run('SELECT generate_series(1, 23)');
ok($seen->(1), 'a call after the reset is counted');
$client->run('SELECT generate_series(1, 23)');
$client->finish;
$observer->ended('live');
is($calls->(), 2, 'calls after the reset stay when the session has ended');

# Resets come between any two steps of sessions at work, of which others take the
# tallies: each session sees the latest of them, with its next exchange.
my $working = pgbench('resets', 4, 1_000_000, script('working', 'SELECT 1'));
my $taking = pgbench('taking', 2, 1_000_000, $reading);
my $at_work = sub {
	my ($least) = @_;

	return $observer->poll(
		sub {
			$observer->value(
				"SELECT count(*) FROM pgnetlat_sessions
				 WHERE application_name = 'resets' AND requests >= $least"
			) == 4;
		});
};
ok($at_work->(1), 'sessions work while resets come');
foreach my $series (1 .. 5)
{
	$observer->run('SELECT pgnetlat_reset()') foreach 1 .. 20;
	ok($at_work->(10), "after $series series of resets, all sessions count");
}

# not SIGINT, which those whom a shell started in the background ignore
$_->signal('TERM')  foreach $working, $taking;
eval { $_->finish } foreach $working, $taking;
my $sum = $observer->ended('resets', 4);
my ($counted) = $observer->rows(
	"SELECT count FROM pgnetlat_histogram WHERE application_name = 'resets'
	 AND metric = 'request' AND le = '+Inf'");
my $missing = $sum->{requests} - $counted->{count};
ok( $missing >= 0 && $missing <= 4,
	"histograms and accounts agree, but for what was in progress ($missing)");

# The exchange in progress at a reset is the first one after it, and the next ones
# are seen, however little time there is between them.
{
	local $ENV{PGAPPNAME} = 'resetting';
	$node->safe_psql('postgres',
		'SELECT pgnetlat_reset();' . "\nSELECT 1;" x 20);
}
is($observer->ended('resetting')->{requests},
	21, 'what a session does after its own reset counts at once');

no_violations($observer);
$node->stop;
done_testing();
