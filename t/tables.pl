
# Copyright (c) 2026, the pgnetlat authors

# Tables that are read while entries are added and evicted: no sum falls, no row
# is shown twice, and nothing is lost.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use POSIX qw(WNOHANG ceil);
use PostgreSQL::Test::Utils;
use Test::More;

# eight partitions of statements, four of groups
my ($max_statements, $max_clients) = (1000, 400);
my $node = new_node('tables', conf => <<"EOC");
pgnetlat.max_statements = $max_statements
pgnetlat.max_clients = $max_clients
pgnetlat.recorder_size = 16
pgnetlat.pooler_mode = session
EOC
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');

# A statement whose query identifier differs from that of every other number:
# a constant of one type or another in each place.
sub statement
{
	my ($number) = @_;

	return 'SELECT '
	  . join(', ', map { $number >> $_ & 1 ? '1' : "''" } 0 .. 13);
}

# So many of a session's statements are between others that give it a new name, which
# takes what it has counted; more than it has room for follow, in a quarter.
sub named
{
	my ($count) = @_;

	return 0.75 * $count;
}

# A session that runs so many statements, some of them twice, and first has a new
# name after every ten of them, and another address behind a pooler, since of one there
# are only so many names; psql in a process of its own, whose ID is returned.
sub start_writer
{
	my ($name, $count) = @_;
	my $file = $node->basedir . "/$name.sql";
	my $script = "\\o /dev/null\n";

	for my $i (0 .. $count - 1)
	{
		$script .=
			"SET application_name = '$name - 10.0."
		  . int($i / 1000) . '.'
		  . $i / 10 % 100
		  . ":5000';\n"
		  if $i % 10 == 0 && $i < named($count);
		$script .= statement($i * 7 % 1500) . ";\n";
	}
	PostgreSQL::Test::Utils::append_to_file($file, $script);

	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		exec('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d',
			$node->connstr('postgres'))
		  or POSIX::_exit(1);
	}
	return $pid;
}

# Statements that it runs.
sub statements_of
{
	my ($count) = @_;

	return $count + ceil(named($count) / 10);
}

# Reads a table over and over, as fast as possible, checks each reading, and
# compares its sums with the previous one's.  Returns what is wrong.  Times are
# sums of floating point numbers, in no particular order.
sub reader_function
{
	my ($table, $key, @columns) = @_;
	my $sums = join(', ', map { "coalesce(sum($_), 0) AS $_" } @columns);
	my $falls = join("\n", map { <<"EOC" } @columns);
		IF sums.$_ < previous.$_ - 1e-6 THEN
			RETURN NEXT format('$table.$_: %s after %s', sums.$_, previous.$_);
		END IF;
EOC

	$observer->run(<<"EOC");
CREATE FUNCTION read_$table(readings int) RETURNS SETOF text LANGUAGE plpgsql AS \$\$
DECLARE
	sums record;
	previous record;
BEGIN
	FOR i IN 1 .. readings LOOP
		SELECT count(*) AS count, count(DISTINCT ($key)) AS different, $sums
		INTO sums FROM $table;
		IF sums.count <> sums.different THEN
			RETURN NEXT format('$table: %s rows, %s of them different',
				sums.count, sums.different);
		END IF;
		IF i = 1 THEN
			previous := sums;
		END IF;
$falls
		previous := sums;
	END LOOP;
END \$\$
EOC
	return;
}

reader_function(
	'pgnetlat_statements',
	'userid, dbid, queryid',
	qw(calls rows bytes_sent exec_time client_time));
reader_function(
	'pgnetlat_clients',
	'datid, usesysid, application_name, client_addr',
	qw(requests statements bytes_sent exec_time client_time idle_time
	  ended_sessions));

my @wrong;

sub check_readings
{
	push @wrong,
	  map { $_->{line} } $observer->rows("SELECT read_$_(20) AS line")
	  foreach qw(pgnetlat_statements pgnetlat_clients);
	return;
}

# ---------------------------------------------------------------------------
# Reading, adding, evicting
# ---------------------------------------------------------------------------

# statements come back, while they are in the table or after they were thrown out
my $count = 4000;
my %writers = map { start_writer("writer $_", $count) => 1 } 1 .. 3;
my $evicted = 0;
my $failed = 0;

sub evicted
{
	return $observer->value(
		'SELECT statements_evicted + clients_evicted FROM pgnetlat_info');
}

while (%writers)
{
	my $before = evicted();

	check_readings();
	$evicted += evicted() - $before;
	foreach my $pid (keys %writers)
	{
		next if waitpid($pid, WNOHANG) != $pid;
		$failed += $? != 0;
		delete $writers{$pid};
	}
}
is($failed, 0, 'the writers have done all their work');
cmp_ok($evicted, '>', 0, 'entries were evicted during the readings');
check_readings();
is(join("\n", @wrong), '', 'no sum fell, and no row was shown twice');

my ($info) = $observer->rows('SELECT * FROM pgnetlat_info');
cmp_ok($info->{statements_evicted},
	'>', 500, 'enough statements were evicted');
cmp_ok($info->{clients_evicted}, '>', 300, 'enough groups were evicted');
cmp_ok($info->{statements}, '<=', $max_statements,
	'there are at most max_statements statements');
cmp_ok(
	$info->{statements}, '>=',
	$max_statements * 0.9,
	'there are nearly max_statements statements');
cmp_ok($info->{clients}, '<=', $max_clients,
	'there are at most max_clients groups');
cmp_ok(
	$info->{clients}, '>=',
	$max_clients * 0.9,
	'there are nearly max_clients groups');
ok( $observer->poll(
		sub {
			$observer->value('SELECT sum(calls) FROM pgnetlat_statements') ==
			  3 * statements_of($count);
		}),
	'each call is counted once');
is( $observer->value(
		q{SELECT sum(statements) FROM pgnetlat_clients
		  WHERE application_name <> 'observer'}),
	3 * statements_of($count),
	'each statement is counted for a group');

# ---------------------------------------------------------------------------
# Resets
# ---------------------------------------------------------------------------

# A copy is of the time before a reset or of that after it: when nobody adds to
# the tables, a reset leaves nothing of what was there.
my $resetter = PgNetlat::Observer->connect($node);
$resetter->run('SELECT pgnetlat_reset()');

for (1 .. 20)
{
	waitpid(start_writer("before reset $_", 300), 0);
	$observer->poll(
		sub {
			$observer->value('SELECT sum(calls) FROM pgnetlat_statements') >=
			  statements_of(300);
		});
	$resetter->put(query('SELECT pgnetlat_reset()'));
	my $calls = $observer->value(
		'SELECT coalesce(sum(calls), 0) FROM pgnetlat_statements');
	$resetter->until('Z');
	push @wrong, "$calls calls"
	  if $calls != 0 && $calls != statements_of(300);
}
is(join("\n", @wrong),
	'', 'a copy read during a reset has everything or nothing');
is($observer->value('SELECT statements_evicted FROM pgnetlat_info'),
	0, 'a reset sets the number of evictions to zero');

no_violations($observer);
$_->finish foreach $observer, $resetter;
$node->stop;
done_testing();
