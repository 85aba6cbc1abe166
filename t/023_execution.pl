
# Copyright (c) 2026, the pgnetlat authors

# What execution consists of: processor, files, locks, standbys, other servers.
# Sampled, so what is known to have taken a second is looked for, with some
# samples' room.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('execution', conf => "deadlock_timeout = 10s\nautovacuum = off");
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE TABLE t AS SELECT 0 AS i',
	q{CREATE FUNCTION compute(seconds float) RETURNS void LANGUAGE plpgsql AS
	  $$ DECLARE ends timestamptz := clock_timestamp() + seconds * interval '1 s';
	  BEGIN WHILE clock_timestamp() < ends LOOP END LOOP; END $$});

my @parts = grep { $_ ne 'exec_unsampled_time' } @PgNetlat::Observer::EXEC_PARTS;

# A part is most of so much execution.  A sample may come late on a busy machine,
# and then stands for what was before.
sub is_most
{
	my ($account, $part, $milliseconds, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	cmp_ok($account->{$part}, '>=', 0.9 * $milliseconds, "$name: $part")
	  or diag(join(', ', map { "$_=$account->{$_}" } 'exec_time', @PgNetlat::Observer::EXEC_PARTS));
	return;
}

# Nobody looks while it runs.
sub after
{
	my ($client, @queries) = @_;
	my $before = $observer->settled($client->pid, 0);

	$client->run(@queries);
	return delta($before, $observer->settled($client->pid, $before->{requests} + @queries));
}

# ---------------------------------------------------------------------------
# Seen only afterwards
# ---------------------------------------------------------------------------

my $client = PgNetlat::Client->connect($node, tcp => 1, application_name => 'client');
is_most(after($client, 'SELECT pg_sleep(1)'), 'exec_other_time', 1000, 'pg_sleep');
is_most(after($client, 'SELECT compute(1)'), 'exec_cpu_time', 1000, 'a loop');

# ---------------------------------------------------------------------------
# Seen meanwhile, often
# ---------------------------------------------------------------------------

my $before = $observer->settled($client->pid, 0);
$client->put(query('SELECT pg_sleep(1)'));
my $looks = 0;
$observer->poll(
	sub {
		$looks++;
		my $now = $observer->account($client->pid);
		$now->{requests} > $before->{requests};
	});
cmp_ok($looks, '>', 5, 'looked at while it executes');
is_most(delta($before, $observer->settled($client->pid, $before->{requests} + 1)),
	'exec_other_time', 1000, 'pg_sleep, looked at');
$client->responses;

# ---------------------------------------------------------------------------
# Locks: exact while they are waited for
# ---------------------------------------------------------------------------

my $holder = PgNetlat::Client->connect($node, application_name => 'holder');
$holder->run('BEGIN', 'UPDATE t SET i = 1');
$before = $observer->settled($client->pid, 0);
$client->put(query('UPDATE t SET i = 2'));
$observer->poll(
	sub {
		$observer->value(
			'SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart IS NOT NULL AND pid = '
			  . $client->pid);
	});
pause(300);
for (1 .. 5)
{
	pause(50);
	my ($row) = $observer->rows(
		'SELECT s.*, extract(epoch FROM statement_timestamp() - l.waitstart) * 1000 AS waited_at_least,
				extract(epoch FROM clock_timestamp() - a.query_start) * 1000 AS asked_for
		   FROM pg_locks l JOIN pgnetlat_sessions s USING (pid) JOIN pg_stat_activity a USING (pid)
		  WHERE NOT l.granted AND s.pid = ' . $client->pid);
	my $lock = $row->{exec_lock_time} - $before->{exec_lock_time};

	cmp_ok($lock, '>=', $row->{waited_at_least} - 0.1, 'a lock is waited for, and all of it is seen');
	cmp_ok($lock, '<=', $row->{asked_for} + 0.1, 'and not more than there was');
}
pause(500);
$holder->run('ROLLBACK');
$client->responses;
my $gain = delta($before, $observer->settled($client->pid, $before->{requests} + 1));
is_most($gain, 'exec_lock_time', 1000, 'a lock');
is($gain->{exec_other_time} + $gain->{exec_remote_time} + $gain->{exec_replication_time},
	0, 'and no other wait');

no_violations($observer);
$node->stop;
done_testing();
