
# Copyright (c) 2026, the pgnetlat authors

# Faults of servers: their disk, their standby, another server, or too few
# processors; and predictions that agree with the findings.  t/diagnose.pl has
# the faults of clients, locks and connections, and test/cures those of
# networks.

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

# Requests that are enough to judge.
my $REQUESTS = 60;

# While this file exists, the disk is slow for servers that load the library.
my $slow = "${PostgreSQL::Test::Utils::tmp_check}/slow";
my $library = "${PostgreSQL::Test::Utils::tmp_check}/slow_disk.so";
my $no_disk = $^O ne 'linux'
  || system('cc', '-shared', '-fPIC', '-O2', '-Wall', '-Wextra', '-Werror',
	'-o', $library, "$FindBin::RealBin/PgNetlat/slow_disk.c") != 0;

my $node = new_node(
	'verdicts',
	init => { allows_streaming => 1 },
	conf => <<'EOC');
fsync = on
shared_buffers = '1MB'
synchronous_commit = local
wal_sync_method = fdatasync
wal_writer_delay = '10s'
wal_sender_timeout = 0
EOC
{
	local %ENV =
		$no_disk
	  ? %ENV
	  : (%ENV, LD_PRELOAD => $library, SLOW_DISK => $slow);
	$node->start;
}
my $observer = PgNetlat::Observer->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE TABLE t (i int)',
	'CREATE TABLE big (i int PRIMARY KEY, x text) WITH (fillfactor = 10)',
	q{INSERT INTO big SELECT i, repeat('x', 100) FROM generate_series(1, 8000) i},
	'VACUUM ANALYZE big',
	'CHECKPOINT');

# Forgets what a client has done so far.
sub begin_anew
{
	my ($client) = @_;

	$observer->settled($client);
	$observer->run('SELECT pgnetlat_reset()');
	$client->begin_anew;
	return;
}

# A client that is connected.
sub begin
{
	my ($name) = @_;
	my $client = PgNetlat::Client->connect(
		$node,
		tcp => 1,
		application_name => $name);

	begin_anew($client);
	return $client;
}

# Runs statements one after the other; milliseconds that they took.
sub run_all
{
	my ($client, @statements) = @_;
	my $start = now();

	$client->run($_) foreach @statements;
	return now() - $start;
}

# The first finding is about the client, and is what it waited for.
sub expect_bound
{
	my ($client, $cause, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$observer->settled($client);
	my $row = expect_verdict($observer, 'server-bound', $name,
		sub { $_->{evidence} =~ / are \Q$cause\E/ });

	is($row->{subject_kind}, 'client',
		"$name: the finding is about a client");
	is($row->{application_name},
		$name, "$name: the finding names the application");
	return $row;
}

# What would be saved if the server were twice as fast, by both functions.
sub expect_agreement
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($row) = $observer->rows(
		qq{SELECT saving_share, 1 - predicted_transaction_time / transaction_time AS predicted
			 FROM pgnetlat_diagnose() JOIN pgnetlat_what_if(server_speed => 2) USING (application_name)
			WHERE application_name = '$name'});

	cmp_ok($row->{predicted}, '>', 0.2,
		"$name: a faster server is predicted to help");
	cmp_ok(abs($row->{saving_share} / $row->{predicted} - 1),
		'<', 0.3,
		"$name: the prediction agrees with the saving of the finding")
	  or diag(explain($row));
	return;
}

# ---------------------------------------------------------------------------
# The disk
# ---------------------------------------------------------------------------

SKIP:
{
	skip 'needs Linux and a C compiler', 1 if $no_disk;

	my %load = (
		reads => [
			map { 'SELECT x FROM big WHERE i = ' . (1 + $_ * 397 % 8000) }
			  1 .. $REQUESTS
		],
		writes => [ map { "INSERT INTO t VALUES ($_)" } 1 .. $REQUESTS ]);

	foreach my $name (sort keys %load)
	{
		my $client = begin($name);

		# the catalogs and the code are there, so that the rest is the load's
		$client->run($load{$name}[0]);
		begin_anew($client);

		append_to_file($slow, '');
		my $took = run_all($client, @{ $load{$name} });
		unlink($slow);
		my $row = expect_bound($client, 'I/O', $name);
		like(
			$row->{advice},
			qr/pg_stat_io.*2 times as fast/,
			"$name: the advice names pg_stat_io");
		cmp_ok($took, '>=', $REQUESTS * 20, "$name: the disk was slow");
		cmp_ok(
			$observer->account($client->pid)->{exec_io_time},
			'>=',
			$REQUESTS * 20 / 2,
			"$name: the session has exec_io_time");
		expect_agreement($name);

		# the same without it; the real one may be slow as well
		$client->run('SET synchronous_commit = off');
		begin_anew($client);
		run_all($client, @{ $load{$name} });
		$observer->settled($client);
		is( scalar(
				grep { $_->{evidence} =~ / are I\/O/ } $observer->findings),
			0,
			"$name: with a fast disk there is no such finding");
		$client->finish;
	}
}

# ---------------------------------------------------------------------------
# A slow standby
# ---------------------------------------------------------------------------

my $delay = 50;
my $standby = start_standby('standby', $node);
$standby->append_conf('postgresql.conf', <<EOC);
recovery_min_apply_delay = '${delay}ms'
wal_receiver_timeout = 0
EOC
$standby->reload;
$node->append_conf('postgresql.conf',
	q{synchronous_standby_names = 'standby'});
$node->reload;
$observer->poll(
	sub {
		$observer->value('SELECT sync_state FROM pg_stat_replication') eq
		  'sync';
	}) or die 'the standby is not synchronous';

my $writer = begin('replicated');
my @inserts = map { "INSERT INTO t VALUES ($_)" } 1 .. $REQUESTS;
$writer->run('SET synchronous_commit = remote_apply');
my $took = run_all($writer, @inserts);
my $row = expect_bound($writer, 'waiting for a standby', 'replicated');
like($row->{advice}, qr/synchronous_commit/,
	'replicated: the advice names synchronous_commit');
cmp_ok(
	$took, '>=',
	0.96 * $delay * $REQUESTS,
	"replicated: each commit took as long as the standby's delay");
my $waited = $observer->account($writer->pid)->{exec_replication_time};
cmp_ok($row->{saving_sessions} / $row->{lost_sessions},
	'>=', 1 - 1e-9, 'replicated: all of the wait could be saved');
cmp_ok(
	$waited, '>=',
	$delay * $REQUESTS / 2,
	'replicated: most of its time was waiting for the standby');

# and is, to the precision of the sampler's ticks
$writer->run('SET synchronous_commit = local');
my $cured = run_all($writer, @inserts);
cmp_ok(
	$took - $cured,
	'>=',
	$waited / 2,
	'replicated: synchronous_commit = local saves what was predicted');
begin_anew($writer);
run_all($writer, @inserts);
$observer->settled($writer);
is( scalar(grep { $_->{evidence} =~ /^replication: / } $observer->findings),
	0,
	'replicated: with synchronous_commit = local there is no such finding');
$writer->finish;
$node->append_conf('postgresql.conf', q{synchronous_standby_names = ''});
$node->reload;
$standby->stop;

# ---------------------------------------------------------------------------
# Another server
# ---------------------------------------------------------------------------

SKIP:
{
	skip 'postgres_fdw is not installed', 1
	  unless $observer->value(
		q{SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'}
	  );

	my $there = PostgreSQL::Test::Cluster->new('there');
	$there->init;
	$there->start;
	$there->safe_psql('postgres',
		'CREATE VIEW slow AS SELECT 1 AS i FROM pg_sleep(0.02)');
	$observer->run(
		'CREATE EXTENSION postgres_fdw',
		sprintf(
			q{CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres')},
			$there->host, $there->port),
		'CREATE USER MAPPING FOR CURRENT_USER SERVER there',
		q{CREATE FOREIGN TABLE slow_there (i int) SERVER there OPTIONS (table_name 'slow')}
	);
	my $client = begin('asks elsewhere');
	run_all($client, ('SELECT * FROM slow_there') x $REQUESTS);
	$row =
	  expect_bound($client, 'waiting for another server', 'asks elsewhere');
	is($row->{saving_sessions},
		undef, 'asks elsewhere: the saving is not known');
	like($row->{advice}, qr/postgres_fdw/,
		'asks elsewhere: the advice names postgres_fdw');
	$client->finish;
	$there->stop;
}

# ---------------------------------------------------------------------------
# Too few CPUs
# ---------------------------------------------------------------------------

SKIP:
{
	my $processors = qx(nproc) // 0;

	skip 'the kernel does not report run queues', 1
	  unless -r '/proc/self/schedstat';
	skip "there may be as many as $processors processors", 1
	  if $processors < 1 || $processors > 16;

	# four for each of them, so that three wait
	my $script = "${PostgreSQL::Test::Utils::tmp_check}/computes.sql";
	append_to_file($script,
		"SELECT sum(i) FROM generate_series(1, 100000) i;\n");
	$observer->run('SELECT pgnetlat_reset()');
	{
		local $ENV{PGAPPNAME} = 'computes';
		$node->command_ok(
			[
				'pgbench', '-n', '-c', 4 * $processors,
				'-t', '15', '-f', $script,
				'postgres'
			],
			'more sessions compute than there are processors');
	}
	$observer->ended('computes', 4 * $processors);
	($row) = $observer->findings;
	is($row->{verdict}, 'starved', 'starved: the finding comes first')
	  or diag(explain([ $observer->findings ]));
	is($row->{subject_kind}, 'server',
		'starved: the finding is about the server');
	like(
		$row->{evidence},
		qr/waited for a CPU/,
		'starved: the evidence says waited for a CPU');
	cmp_ok($row->{saving_sessions},
		'==', $row->{lost_sessions}, 'starved: all of it could be saved');
	note($row->{evidence});
}

no_violations($observer);
$node->stop;
done_testing();
