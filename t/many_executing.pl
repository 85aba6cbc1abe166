
# Copyright (c) 2026, the pgnetlat authors

# Many sessions that execute at once: the sampler ticks less often, so that it
# costs no more, and its samples still stand for all of the time.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	SESSIONS => 800,
	PER_INTERVAL => 400,    # as in sampler.c
	INTERVAL => 10,         # ms: pgnetlat.sample_interval
};

my ($node, $observer) = start_node('many_executing',
	conf => 'max_connections = ' . (SESSIONS + 10));

sub client
{
	return PgNetlat::Client->connect($node,
		application_name => $_[0] // 'executing');
}

# The figures of the sampler and of the account, at one moment.
sub look
{
	my ($looked) = $observer->rows(
		q{SELECT extract(epoch FROM clock_timestamp()) * 1000 AS at, sampler_ticks AS ticks,
		         (SELECT coalesce(sum(exec_time), 0) FROM pgnetlat_sessions
		          WHERE application_name = 'executing') AS exec_time,
		         (SELECT coalesce(sum(exec_other_time), 0) FROM pgnetlat_sessions
		          WHERE application_name = 'executing') AS exec_other_time,
		         (SELECT sum(time) FROM pgnetlat_waits WHERE wait_event = 'PgSleep') AS slept
		  FROM pgnetlat_info});
	return $looked;
}

# How that has changed after so many seconds.
sub change_in
{
	my ($seconds) = @_;
	my $before = look();

	$observer->run("SELECT pg_sleep($seconds)");
	my $after = look();
	return { map { $_ => $after->{$_} - $before->{$_} } keys %$after };
}

my @executing = map { client() } 1 .. SESSIONS;
$_->put(query('SELECT pg_sleep(3600)')) foreach @executing;
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pg_stat_activity
				  WHERE application_name = 'executing' AND wait_event = 'PgSleep'}
			) == SESSIONS;
		}),
	'all sessions execute');

my $change = change_in(2);

# the clock may have been read later than the ticks
cmp_ok(
	$change->{ticks}, '<=',
	1.25 * $change->{at} / (INTERVAL * SESSIONS / PER_INTERVAL),
	'with many sessions, ticks are further apart');
cmp_ok($change->{ticks}, '>', 0, 'with many sessions, ticks come');
cmp_ok(
	$change->{exec_other_time},
	'>=',
	0.8 * $change->{exec_time},
	'samples stand for the time that passed');

# The profiles are up to 250 ms old.  Where the sampler was put off its processor
# before the first look, that was more; not each time, though.
my $stands_for = 0;
for (1 .. 4)
{
	$change = change_in(2);
	$stands_for = $change->{slept} / SESSIONS / $change->{at};
	last if $stands_for > 0.8 and $stands_for < 1.2;
}
cmp_ok($stands_for, '>', 0.8, 'the profiles of wait events have the time');
cmp_ok($stands_for, '<', 1.2, 'the profiles have no more than the time');

$observer->run(
	q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	  WHERE application_name = 'executing'});
$_->until_closed foreach @executing;
my $one = client('one');
$one->put(query('SELECT pg_sleep(3600)'));
ok( $observer->poll(
		sub {
			my $change = change_in(0.5);
			return $change->{ticks} > 0.75 * $change->{at} / INTERVAL;
		}),
	'with one session, ticks are at the sample_interval');

no_violations($observer);
$node->stop;
done_testing();
