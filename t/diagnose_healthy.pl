
# Copyright (c) 2026, the pgnetlat authors

# Healthy loads, in which pgnetlat_diagnose() must find nothing.  "prove
# t/diagnose_healthy.pl :: --repeat 20" looks at each of them 20 times.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Getopt::Long;
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $repeat = $ENV{PGNETLAT_REPEAT} // 1;

GetOptions('repeat=i' => \$repeat) or die "usage: $0 [--repeat TIMES]\n";

my ($node, $observer) = start_node('healthy');
my $directory = PostgreSQL::Test::Utils::tempdir();

# Processors are scarce while the tests run: the server may be starved, but no
# client may have a finding.  A job that executes all the time is worth a note.
sub findings
{
	my ($application) = @_;

	return map { "$_->{subject_kind} $_->{verdict}: $_->{evidence}" }
	  grep {
			 $_->{lost_sessions} > 0
		  && $_->{severity} ne 'note'
		  && ($_->{subject_kind} eq 'statement'
			|| ($_->{application_name} // '') eq $application)
	  } $observer->rows('SELECT * FROM pgnetlat_diagnose()');
}

sub program
{
	my ($application, @command) = @_;
	my ($out, $err);

	local $ENV{PGAPPNAME} = $application;
	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	local $ENV{PGDATABASE} = 'postgres';
	IPC::Run::run(
		\@command,
		'>' => \$out,
		'2>' => \$err) or die "@command: $err\n";
	return;
}

# Each load runs once, under the application_name of its name.
my %load = (
	pgbench => sub {
		program('pgbench', 'pgbench', '-n', '-c', '4', '-T', '3');
	},
	'pgbench -S' => sub {
		program('pgbench -S', 'pgbench', '-n', '-S', '-c', '4', '-T', '3');
	},

	# eight connections, each of which serves one request after another, and
	# waits for the next one half of the time
	'web' => sub {
		my @pool = map {
			PgNetlat::Client->connect(
				$node,
				tcp => 1,
				application_name => 'web')
		} 1 .. 8;

		for my $round (1 .. 60)
		{
			foreach my $connection (@pool)
			{
				$connection->run(
					'BEGIN',
					"SELECT abalance FROM pgbench_accounts WHERE aid = $round",
					"SELECT bbalance FROM pgbench_branches WHERE bid = 1",
					'COMMIT');
				pause(1);
			}
		}
		$_->finish foreach @pool;
	},

	# the same with single statements
	'web in autocommit' => sub {
		my @pool = map {
			PgNetlat::Client->connect(
				$node,
				tcp => 1,
				application_name => 'web in autocommit')
		} 1 .. 4;

		for my $round (1 .. 150)
		{
			foreach my $connection (@pool)
			{
				$connection->run(
					"SELECT abalance FROM pgbench_accounts WHERE aid = $round"
				);
				pause(1);
			}
		}
		$_->finish foreach @pool;
	},
	'pg_dump' => sub {
		program('pg_dump', 'pg_dump', '-h', '127.0.0.1', '-f', '/dev/null')
		  for 1 .. 3;
	},
	'idle' => sub {
		my @idle = map {
			PgNetlat::Client->connect(
				$node,
				tcp => $_ % 2,
				application_name => 'idle')
		} 1 .. 20;

		$_->run('SELECT 1') foreach @idle;
		pause(1500);
		$_->finish foreach @idle;
	},
	'batch' => sub {
		program(
			'batch',
			'psql',
			'-qX',
			'-c' => 'DROP TABLE IF EXISTS batch',
			'-c' =>
			  q{CREATE TABLE batch AS SELECT i, repeat('x', 50) AS x FROM generate_series(1, 100000) i},
			'-c' => 'UPDATE batch SET i = i + 1',
			'-c' => 'CREATE INDEX ON batch (i)',
			'-c' => 'DELETE FROM batch WHERE i % 3 = 0',
			'-c' => 'ANALYZE batch',
			'-c' =>
			  'SELECT count(*), sum(length(x)) FROM batch a JOIN batch b USING (i, x)',
			'-c' => "\\copy batch TO '$directory/batch'",
			'-c' => "\\copy batch FROM '$directory/batch'");
	});

program('pgbench -i', 'pgbench', '-i', '-q', '-s', '10');
for my $round (1 .. $repeat)
{
	foreach my $application (sort keys %load)
	{
		$observer->run('SELECT pgnetlat_reset()');
		$load{$application}->();
		$observer->ended($application);
		is(join("\n", findings($application)), '', "$application: no finding")
		  or diag(
			explain(
				[
					$observer->rows(
						"SELECT * FROM pgnetlat_clients WHERE application_name = '$application'"
					)
				]));
	}
}

no_violations($observer);
$node->stop;
done_testing();
