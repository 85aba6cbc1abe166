
# Copyright (c) 2026, the pgnetlat authors

# Steps of the wall clock by some milliseconds, in a session that never pauses
# for that long.  After a step, core's timestamps, which say when a request was
# read, are off.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# The file with the number of nanoseconds by which the server's wall clock is
# ahead.
my $ahead = "${PostgreSQL::Test::Utils::tmp_check}/ahead";
my $library = "${PostgreSQL::Test::Utils::tmp_check}/stepped_clock.so";
my $compiled =
  system('cc', '-shared', '-fPIC', '-O2', '-Wall', '-Wextra', '-Werror', '-o',
	$library, "$FindBin::RealBin/PgNetlat/stepped_clock.c");

plan skip_all => 'needs Linux and a C compiler'
  if $compiled != 0 or $^O ne 'linux';

sub step_to
{
	my ($milliseconds) = @_;

	# not a new file: the server has mapped this one
	open(my $file, -e $ahead ? '+<' : '>', $ahead) or die "$ahead: $!\n";
	syswrite($file, pack('q', $milliseconds * 1_000_000)) == 8
	  or die "$ahead: $!\n";
	close($file);
	return;
}

my $node = new_node('clock', conf => <<'EOC');
pgnetlat.idle_threshold = '1h'
pgnetlat.rtt_interval = '50ms'
pgnetlat.recorder_size = 48
EOC

step_to(0);
{
	local %ENV = (%ENV, LD_PRELOAD => $library, STEPPED_CLOCK => $ahead);
	$node->start;
}

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');
my $client = PgNetlat::Client->connect($node);

step_to(3_600_000);
cmp_ok(
	$observer->value('SELECT extract(epoch FROM clock_timestamp())') - time(),
	'>', 3000, "the server's wall clock can be stepped");
step_to(0);

# Is a step noticed while statements sleep?  Until it is, a part of that would be
# a part of the wait before.  What is looked at are the last ones.
sub step
{
	my ($offset, $asleep, $how) = @_;
	my $query = 'SELECT pg_sleep(' . $asleep / 1000 . ')';

	$client->run(($query) x 10);
	step_to($offset);
	$client->run(($query) x 60);
	my ($recent) = $observer->rows(
		'SELECT count(*) AS count, sum(exec_time) AS exec_time
		 FROM (SELECT exec_time FROM pgnetlat_recent('
		  . $client->pid . ') ORDER BY start DESC LIMIT 30) AS r');
	is($recent->{count}, 30,
		"a step to $offset ms, $how: 30 exchanges are recorded");
	at_least(
		$recent->{exec_time},
		30 * $asleep,
		"a step to $offset ms, $how: exec_time is not too short");
	return;
}

# Each exchange and each wait is shorter than the step, so that requests seem to
# come from the future; it is noticed with the first of them.
step($_, 2, 'noticed by the session') foreach 8, 0;

# Here the exchanges are longer, and the waits so short that they do not seem
# long after the step: only the sampler notices it.  (After a step back,
# requests would seem to come before the wait, which the session notices.)
step($_, 12, 'noticed by the sampler only') foreach 3, 6, 9, 12, 15, 18;

no_violations($observer);
$node->stop;
done_testing();
