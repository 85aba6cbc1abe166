
# Copyright (c) 2026, the pgnetlat authors

# A stopped synchronous standby: sessions that commit wait for replication, and
# do not compute.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# no timeouts
my ($primary, $observer) = start_node(
	'primary',
	init => { allows_streaming => 1 },
	conf => "wal_sender_timeout = 0\nwal_receiver_timeout = 0");
$observer->run('CREATE TABLE t (i int)');
my $standby = start_standby('standby', $primary);
$primary->append_conf('postgresql.conf',
	q{synchronous_standby_names = 'standby'});
$primary->reload;
$observer->poll(
	sub {
		$observer->value('SELECT sync_state FROM pg_stat_replication') eq
		  'sync';
	}) or die 'the standby is not synchronous';

my $client = PgNetlat::Client->connect(
	$primary,
	tcp => 1,
	application_name => 'client');
$client->run('INSERT INTO t VALUES (1)');

my $stopped;
END { kill('CONT', $stopped) if $stopped; }

# Runs a statement whose commit waits until it is released.  What is shown of it
# at once, what within the next second, and what afterwards.
sub blocked
{
	my ($name, $sql, $release) = @_;
	my $before = $observer->settled($client->pid, 0);
	my $pid = $client->pid;

	$client->put(query($sql));
	$observer->poll(
		sub {
			(   $observer->value(
					"SELECT wait_event FROM pg_stat_activity WHERE pid = $pid"
				) // '') eq 'SyncRep';
		}) or die "$name: it does not wait for its standby";
	my $waits_since = now();
	my ($now) =
	  $observer->rows("SELECT bar, doing FROM pgnetlat_now WHERE pid = $pid");
	like(
		$now->{doing},
		qr/^waiting for a standby; INSERT/,
		"$name: pgnetlat_now says so");

	# for long enough that it is most of the window, too
	my $at_least = pause(1000);
	my $meanwhile = delta($before, $observer->account($pid));
	cmp_ok(
		$meanwhile->{exec_replication_time},
		'>=',
		0.7 * $at_least,
		"$name: the time is exec_replication_time");
	cmp_ok(
		$meanwhile->{exec_cpu_time} + $meanwhile->{exec_unsampled_time},
		'<=',
		$meanwhile->{exec_time} - 0.7 * $at_least,
		"$name: the time is not exec_cpu_time");
	($now) =
	  $observer->rows("SELECT bar, doing FROM pgnetlat_now WHERE pid = $pid");
	like(
		$now->{doing},
		qr/^waiting for a standby; INSERT/,
		"$name: pgnetlat_now still says so");
	like($now->{bar}, qr/!/, "$name: pgnetlat_now shows it as blocked");

	$at_least = now() - $waits_since;
	$release->();
	$client->responses;
	my $after =
	  delta($before, $observer->settled($pid, $before->{requests} + 1));
	cmp_ok(
		$after->{exec_replication_time},
		'>=',
		0.7 * $at_least,
		"$name: it stays exec_replication_time");
	cmp_ok(
		$after->{exec_cpu_time} + $after->{exec_unsampled_time},
		'<=',
		$after->{exec_time} - 0.7 * $at_least,
		"$name: it does not become exec_cpu_time");
	return;
}

# ---------------------------------------------------------------------------
# The process that receives is stopped
# ---------------------------------------------------------------------------

$stopped =
  $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
kill('STOP', $stopped) or die "it cannot be stopped: $!";
blocked(
	'stopped',
	'INSERT INTO t VALUES (2)',
	sub { kill('CONT', $stopped); });
$stopped = undef;

# ---------------------------------------------------------------------------
# It receives, but does not replay
# ---------------------------------------------------------------------------

$client->run('SET synchronous_commit = remote_apply');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres',
	q{SELECT pg_get_wal_replay_pause_state() = 'paused'})
  or die 'replay is not paused';
blocked(
	'paused',
	'INSERT INTO t VALUES (3)',
	sub { $standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()'); }
);

no_violations($observer);
$standby->stop;
$primary->stop;
done_testing();
