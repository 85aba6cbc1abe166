
# Copyright (c) 2026, the pgnetlat authors

# Histograms of many client groups: many rows at little cost.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

my $groups = 500;
my ($node, $observer) = start_node('histogram', conf => <<'EOC');
pgnetlat.max_clients = 1000
pgnetlat.pooler_mode = session
log_temp_files = 0
EOC
my $client = PgNetlat::Client->connect($node, tcp => 1);

# behind a pooler: of one address, there are only so many groups
foreach (1 .. $groups)
{
	my $address = '10.0.' . int($_ / 100) . '.' . $_ % 100;

	$client->run("SET application_name = 'group $_ - $address:5000'",
		'SELECT 1');
}
$client->run(q{SET application_name = 'other'});
$client->finish;
ok( $observer->poll(
		sub {
			$observer->value(
				"SELECT count(*) FROM pgnetlat_clients
				 WHERE application_name LIKE 'group %'") == $groups;
		}),
	'pgnetlat_clients has all groups');

# ---------------------------------------------------------------------------
# The rows
# ---------------------------------------------------------------------------

my $mine = "application_name LIKE 'group %'";
my ($whole) = $observer->rows(
	"SELECT count(*) AS rows, count(DISTINCT (metric, le)) AS buckets,
			sum(count) FILTER (WHERE metric = 'request' AND le = '+Inf') AS requests,
			count(*) FILTER (WHERE le = '+Inf' AND bucket <> count) AS incomplete,
			count(datname) AS datnames, count(usename) AS usenames
	   FROM pgnetlat_histogram WHERE $mine");
is($whole->{rows}, $groups * 120, 'each group has 120 rows');
is($whole->{buckets}, 120,
	'there are 120 buckets: twenty of each of six metrics');
is($whole->{incomplete}, 0, 'the last bucket has all observations');
is($whole->{$_}, $whole->{rows}, "the $_ of all rows are known")
  foreach qw(datnames usenames);
cmp_ok($whole->{requests}, '>=', $groups,
	'the request histograms have observations');

# ---------------------------------------------------------------------------
# Their sums by database, for exporters
# ---------------------------------------------------------------------------

my $another = PgNetlat::Client->connect($node, dbname => 'template1');
$another->run('SELECT 1');
$another->finish;
$observer->run(q{SET application_name = 'group 1'});
my $different = $observer->value(
	q{
	WITH groups AS (
		SELECT datname::text, metric, le, sum(bucket) AS bucket,
			   count(DISTINCT application_name) AS applications
		  FROM pgnetlat_histogram
		 WHERE application_name <> current_setting('application_name')
		   AND metric IN ('wait', 'connect')
		 GROUP BY 1, 2, 3)
	SELECT concat(count(*), ' of ', max(number), ' and ',
				  max(applications) > 400)
	  FROM (SELECT g.*, count(*) OVER () AS number,
				   CASE metric WHEN 'wait' THEN wait_seconds_bucket
				   ELSE connect_seconds_bucket END AS exported
			  FROM groups g LEFT JOIN pgnetlat_metrics_bucket
			 USING (datname, le)) x
	 WHERE bucket = exported});
is( $different,
	'80 of 80 and t',
	'metrics have the sums of all groups but the exporter');
$observer->run('RESET application_name');

# ---------------------------------------------------------------------------
# The effort
# ---------------------------------------------------------------------------

sub memory
{
	return $observer->value(
		'SELECT sum(used_bytes) FROM pg_backend_memory_contexts');
}

my $all = $observer->value('SELECT count(*) FROM pgnetlat_histogram') / 100;
my $offset = log_size($node);
is($observer->error_of('EXPLAIN ANALYZE SELECT * FROM pgnetlat_histogram'),
	'', 'EXPLAIN ANALYZE reads all rows');

$observer->run('BEGIN');
memory();
my $before = memory();
$observer->run(
	'DECLARE c NO SCROLL CURSOR FOR SELECT * FROM pgnetlat_histogram',
	'FETCH 1 FROM c');
my $begun = memory() - $before;
$observer->run('MOVE 30000 FROM c');
my $later = memory() - $before;
$observer->run('MOVE ALL FROM c', 'COMMIT');

# a group is 1.3 kB; its rows are in a tuplestore
cmp_ok(
	$begun, '<',
	$all * 4096 + 4 * 1024 * 1024,
	'memory for the groups, and at most work_mem for their rows');
cmp_ok($later, '<=', $begun + 64 * 1024,
	'memory does not grow with the rows');
unlike(
	server_log($node, $offset),
	qr/temporary file/,
	'all rows need no temporary file');

# the memory is for those that there are, not for those there is room for
$observer->run('SELECT pgnetlat_reset()', 'BEGIN');
$before = memory();
$observer->run(
	'DECLARE c NO SCROLL CURSOR FOR SELECT * FROM pgnetlat_histogram',
	'FETCH 1 FROM c');
my $few = memory() - $before;
note("few groups take $few bytes, all take $begun");
cmp_ok($few, '<', $begun / 10, 'few groups take little memory');
$observer->run('COMMIT');

no_violations($observer);
$node->stop;
done_testing();
