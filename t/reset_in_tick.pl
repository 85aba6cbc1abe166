
# Copyright (c) 2026, the pgnetlat authors

# A reset while the sampler is in the middle of a tick: what it has seen before the
# reset does not count.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

# Of so many long statements, each of which is added to its row once a second, the
# sampler adds some in each tick.
use constant { SLEEPERS => 50, INTERVAL_MS => 100 };

my $library = backend_library()
  or plan(skip_all => 'there is no compiler, or no server headers');
my ($node, $observer) = start_node('reset_in_tick',
	conf => 'pgnetlat.sample_interval = ' . INTERVAL_MS . 'ms');
$observer->run(
	"CREATE FUNCTION hold_reset_lock(int, bigint) RETURNS void LANGUAGE c AS '$library'"
);

# The sampler waits for the lock when it finds that a session has become busy, and
# then goes on with those behind it.
my $first = PgNetlat::Client->connect($node);
my @sleepers;
foreach (1 .. SLEEPERS)
{
	push @sleepers, PgNetlat::Client->connect($node);
	$sleepers[-1]->put(query('SELECT pg_sleep(3600)'));
	pause(1000 / SLEEPERS);
}
my $last = PgNetlat::Client->connect($node);
my $sleep_id = $observer->value(
	'SELECT query_id FROM pg_stat_activity WHERE pid = ' . $sleepers[0]->pid);

sub time_asleep
{
	return $observer->value(
		"SELECT coalesce(sum(exec_time), 0) FROM pgnetlat_statements WHERE queryid = $sleep_id"
	);
}
ok( $observer->poll(sub { time_asleep() > 1000 * SLEEPERS }),
	'long statements are added to their row while they run');

# The reset must queue for the lock before the sampler does.  The Observer has been idle
# for some ticks, so the sampler has no reason to wait at its slot, which may be the last.
pause(3 * INTERVAL_MS);
my $hold_ms = 5 * INTERVAL_MS;
$first->put(
	query(
		"SELECT hold_reset_lock($hold_ms, shared_memory_bytes) FROM pgnetlat_info"
	));
my $state = 'SELECT state FROM pg_stat_activity WHERE pid = ' . $first->pid;
$observer->poll(sub { $observer->value($state) eq 'active' });
$last->put(query('SELECT pgnetlat_reset()'));
$_->responses foreach $first, $last;
is(time_asleep(), 0, 'what was sampled before a reset is not added after it');

no_violations($observer);
$node->stop;
done_testing();
