
# Copyright (c) 2026, the pgnetlat authors

# Exact counts: what pgbench reports is what was counted, to the unit, with the
# sampler and without.
#
# PGNETLAT_TEST_TRANSACTIONS sets the number of transactions of each of the
# eight clients; 12500 make it 100,000.

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

my $transactions = $ENV{PGNETLAT_TEST_TRANSACTIONS} // 500;
my $clients = 8;

my ($node, $observer) =
  start_node('exactness', conf => "pgnetlat.idle_threshold = '1h'\n");
$observer->run('CREATE UNLOGGED TABLE rows (id int)');

# "rows" is what one execution returns or affects, and identifies the script that a
# statement is from; "calls" is how often one transaction executes that statement.
my @scripts = (
	{
		name => 'one',
		sql => 'SELECT g AS one FROM generate_series(1, 11) g;',
		statements => 1,
		rows => 11,
		calls => 1
	},
	{
		name => 'block',
		sql => "BEGIN;\nSELECT g, g AS two FROM generate_series(1, 13) g;\n"
		  . "SELECT g, g AS two FROM generate_series(1, 13) g;\nCOMMIT;",
		statements => 4,
		rows => 13,
		calls => 2
	},
	{
		name => 'write',
		sql => 'INSERT INTO rows SELECT generate_series(1, 17);',
		statements => 1,
		rows => 17,
		calls => 1
	});
foreach (@scripts)
{
	$_->{file} = PostgreSQL::Test::Utils::tempdir . "/$_->{name}.sql";
	append_to_file($_->{file}, "$_->{sql}\n");
}

# Runs pgbench (one thread: several lose counts of scripts), calling a function
# again and again meanwhile; returns how many transactions of each script it says
# it has processed.
sub pgbench
{
	my ($name, $meanwhile, @options) = @_;
	my ($out, $err) = ('', '');
	local $ENV{PGAPPNAME} = $name;
	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	my $run = IPC::Run::start(
		[
			'pgbench', '-n', '-c', $clients, @options,
			(map { ('-f', $_->{file}) } @scripts), 'postgres'
		],
		'>',
		\$out,
		'2>',
		\$err);

	while ($run->pumpable)
	{
		$run->pump_nb;
		$meanwhile->();
	}
	$run->finish or die "pgbench failed: $err";

	my ($total) = $out =~ /number of transactions actually processed: (\d+)/;
	my @counts = $out =~ /^ - (\d+) transactions/mg;
	my $sum = 0;
	$sum += $_ foreach @counts;
	is($sum, $total, "$name: pgbench's counts add up to its total");
	return @counts;
}

# Compares what was counted with what pgbench says; with its requests only if it
# has sent no others, to prepare its statements.
sub check
{
	my ($name, $prepares, @counts) = @_;
	my ($requests, $done) = (0, 0);

	foreach (0 .. $#counts)
	{
		$requests += $counts[$_] * $scripts[$_]{statements};
		$done     += $counts[$_];
	}
	my $sum = $observer->ended($name, $clients);
	ok($sum, "$name: all sessions have ended");
	if (!$prepares)
	{
		is($sum->{requests}, $requests,
			"$name: requests are what pgbench sent");
		is($sum->{statements}, $requests,
			"$name: statements are what pgbench sent");
		is($sum->{transactions}, $done,
			"$name: transactions are what pgbench reports");
		is($sum->{round_trips}, $requests,
			"$name: round trips are what pgbench made");
	}
	foreach my $number (0 .. 2)
	{
		my $script = $scripts[$number];
		my $calls = $script->{calls} * $counts[$number];
		my @found =
		  grep { $_->{calls} and $_->{rows} == $_->{calls} * $script->{rows} }
		  $observer->rows('SELECT * FROM pgnetlat_statements');

		is(scalar @found,
			1, "$name: script $script->{name} has one statement row");
		is($found[0]{calls}, $calls,
			"$name: calls of script $script->{name} are exact");
		is( $found[0]{rows},
			$calls * $script->{rows},
			"$name: rows of script $script->{name} are exact");
	}

	# BEGIN, COMMIT and the one statement in between that repeats
	my ($repeats) = $observer->rows(
		'SELECT sum(repeats) AS repeats FROM pgnetlat_statements
		 WHERE rows = 13 * calls AND calls > 0');
	is($repeats->{repeats}, $counts[1],
		"$name: the second execution in each block is a repeat");

	my ($exchange) = $observer->rows(
		"SELECT count FROM pgnetlat_histogram WHERE application_name = '$name'
		 AND metric = 'request' AND le = '+Inf'");
	is($exchange->{count}, $sum->{requests},
		"$name: every exchange is in the histogram");
	$observer->run('SELECT pgnetlat_reset()');
	return;
}

# Reads the sessions while they are busy.
my $watch = sub { $observer->accounts; $observer->clients; pause(20) };

check('simple', 0, pgbench('simple', $watch, '-t', $transactions));
check('prepared', 1,
	pgbench('prepared', $watch, '-M', 'prepared', '-t', $transactions));
check('tcp', 0,
	pgbench('tcp', $watch, '-h', '127.0.0.1', '-t', $transactions));

# A live session, too, shows exactly what it has done.
my $client = PgNetlat::Client->connect($node, application_name => 'single');
my $before = $observer->settled($client);
$client->run('SELECT 1') foreach 1 .. 1000;
my $after = $observer->settled($client);
my $gain = delta($before, $after);
is( "$gain->{requests} $gain->{statements} $gain->{transactions}",
	'1000 1000 1000',
	'counts of a live session are exact');
$client->finish;

# ---------------------------------------------------------------------------
# The worker is terminated every second
# ---------------------------------------------------------------------------

$observer->ended('single');
$observer->run('SELECT pgnetlat_reset()');
my $terminated = 0;
my $next = now();
my @counts = pgbench(
	'without worker',
	sub {
		$watch->();
		return if now() < $next;
		my $killed = $observer->value(
			'SELECT pg_terminate_backend(sampler_pid) FROM pgnetlat_info');
		$terminated++ if defined $killed and $killed eq 't';
		$next = now() + 1000;
	},
	'-T',
	4);
cmp_ok($terminated, '>=', 1, 'the sampler was terminated');
check('without worker', 0, @counts);

no_violations($observer);
$node->stop;
done_testing();
