
# Copyright (c) 2026, the pgnetlat authors

# The wall clock steps by some milliseconds, in a session that never pauses for
# as long: core's timestamps, which say when a request was read, then are off.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($library) = glob('/usr/lib/*/faketime/libfaketime.so.1');
plan skip_all => 'libfaketime is not installed' unless $library;

my $node = new_node('clock', conf => <<'EOC');
pgnetlat.idle_threshold = '1h'
EOC

# The server's wall clock is ahead by what this file says, from the next
# reading on.
my $ahead = $node->basedir . '/ahead';

sub step_to
{
	my ($offset) = @_;

	append_to_file("$ahead.new", "$offset\n");
	rename("$ahead.new", $ahead) or die "rename: $!\n";
	return;
}

step_to('+0');
{
	local %ENV = (
		%ENV,
		LD_PRELOAD => $library,
		FAKETIME_TIMESTAMP_FILE => $ahead,
		FAKETIME_NO_CACHE => 1,
		FAKETIME_DONT_FAKE_MONOTONIC => 1,
		DONT_FAKE_MONOTONIC => 1);
	$node->start;
}

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');
my $client = PgNetlat::Client->connect($node);
my $real = time();
cmp_ok(
	abs($observer->value('SELECT extract(epoch FROM clock_timestamp())') -
		  $real),
	'<', 60,
	'the server has its clock from the library');

# Each exchange and each wait is shorter than the step, so that requests seem to
# come from the future; it is noticed with the first of them.  What is looked at
# are the last ones.
foreach my $offset ('+0.008', '-0.008')
{
	my $asleep = 'SELECT pg_sleep(0.002)';

	$client->run(($asleep) x 10);
	step_to($offset);
	$client->run(($asleep) x 60);
	my ($recent) = $observer->rows(
		'SELECT count(*) AS count, sum(exec_time) AS exec_time FROM (SELECT exec_time
		 FROM pgnetlat_recent('
		  . $client->pid . ') ORDER BY start DESC LIMIT 30) AS r');
	is($recent->{count}, 30, "a step to $offset s: exchanges");
	at_least($recent->{exec_time}, 30 * 2,
		"a step to $offset s: they execute");
}

no_violations($observer);
$node->stop;
done_testing();
