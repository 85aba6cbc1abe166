
# Copyright (c) 2026, the pgnetlat authors

# Many lock waits at once: for more locks than the sampler asks the lock manager
# about in a round, and for more holders that are no sessions than there are
# places for.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# as in lock_graph.c and lock_waits.c
use constant {
	ROUND_QUESTIONS => 64,
	OTHER_HOLDERS => 64,
};

my ($node, $observer) = start_node('many_waits',
	conf => 'max_prepared_transactions = ' . (OTHER_HOLDERS + 1));

sub client
{
	my ($name) = @_;

	return PgNetlat::Client->connect($node, application_name => $name);
}

# Waits until so many are known to wait for this process.
sub all_wait_for
{
	my ($count, $pid) = @_;

	return $observer->poll(
		sub {
			$observer->value(
				"SELECT count(*) = $count FROM pgnetlat_sessions WHERE blocked_by = $pid"
			) eq 't';
		});
}

# ---------------------------------------------------------------------------
# More locks than questions
# ---------------------------------------------------------------------------

my $many = ROUND_QUESTIONS + 6;
my $holder = client('holder');
my @victim = map { client("victim $_") } 1 .. $many;

$holder->run('BEGIN',
	"SELECT count(pg_advisory_xact_lock(i)) FROM generate_series(1, $many) i"
);
$victim[ $_ - 1 ]->put(query("SELECT pg_advisory_xact_lock($_)"))
  foreach 1 .. $many;
ok(all_wait_for($many, $holder->pid),
	'of each it is known whom it waits for');
is( $observer->value(
		q{SELECT blocked_sessions FROM pgnetlat_blockers
		  WHERE application_name = 'holder' ORDER BY 1 DESC LIMIT 1}),
	$many,
	'and the holder has all of them');
$holder->run('COMMIT');
$_->responses foreach @victim;

# ---------------------------------------------------------------------------
# More holders than places
# ---------------------------------------------------------------------------

# who prepared what is a holder of its own
foreach my $i (1 .. OTHER_HOLDERS + 1)
{
	$holder->run(
		"CREATE ROLE role_$i",
		"SET SESSION AUTHORIZATION role_$i",
		'BEGIN',
		"SELECT pg_advisory_xact_lock($i)",
		"PREPARE TRANSACTION 'prepared $i'",
		'RESET SESSION AUTHORIZATION');
}
$victim[ $_ - 1 ]->put(query("SELECT pg_advisory_xact_lock($_)"))
  foreach 1 .. OTHER_HOLDERS;
ok(all_wait_for(OTHER_HOLDERS, 0), 'all places are taken');
$holder->run("COMMIT PREPARED 'prepared $_'") foreach 1 .. OTHER_HOLDERS;
$victim[ $_ - 1 ]->responses foreach 1 .. OTHER_HOLDERS;

my $last = $victim[OTHER_HOLDERS];
$last->put(
	query('SELECT pg_advisory_xact_lock(' . (OTHER_HOLDERS + 1) . ')'));
ok(all_wait_for(1, 0), 'when those waits are over there is a place again');
$holder->run(sprintf(q{COMMIT PREPARED 'prepared %d'}, OTHER_HOLDERS + 1));
$last->responses;

no_violations($observer);
$node->stop;
done_testing();
