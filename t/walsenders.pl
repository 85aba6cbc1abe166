
# Copyright (c) 2026, the pgnetlat authors

# Walsenders: what the kernel says about their connections.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# programs have their own names
delete $ENV{PGAPPNAME};

my @KERNEL = qw(rtt srtt retransmits bytes_acked bytes_queued sender_time
  busy_time network_limited_time receiver_limited_time buffer_limited_time);

my ($primary, $observer) = start_node(
	'primary',
	init => { allows_streaming => 'logical' },
	conf => "wal_sender_timeout = 0\n");
my $standby = start_standby('standby', $primary);

# Writes this many megabytes of WAL.
sub write_wal
{
	my ($megabytes) = @_;

	$observer->run(
		qq{SELECT pg_logical_emit_message(true, 'pgnetlat', repeat('x', 1000000))
			 FROM generate_series(1, $megabytes)});
	return;
}

# A client to which WAL is streamed, over TCP unless options say otherwise.
sub stream
{
	my (%options) = @_;
	my $client = PgNetlat::Client->connect(
		$primary,
		tcp => 1,
		replication => 'true',
		%options);

	$client->put(
		query(
			'START_REPLICATION PHYSICAL '
			  . $observer->value('SELECT pg_current_wal_flush_lsn()')));
	$client->until('W');
	return $client;
}

# ---------------------------------------------------------------------------
# A standby over a Unix-domain socket
# ---------------------------------------------------------------------------

my $row = $observer->await_walsender(q{application_name = 'standby'},
	sub { $_->{state} eq 'streaming' });
ok($row, 'a standby: the walsender is streaming');
is($row->{client_port}, -1,
	'a standby: client_port is -1 on a Unix-domain socket');
is($row->{sync_priority}, 0, 'a standby: sync_priority is 0');
is($row->{sync_state}, 'async', 'a standby: sync_state is async');
cmp_ok($row->{total_time}, '>', 0, 'a standby: total_time is not zero');
is($row->{$_}, undef, "a standby: $_ is NULL on a Unix-domain socket")
  foreach 'client_addr', @KERNEL;
is( $observer->value(
		'SELECT count(*) FROM pgnetlat_walsenders w
		   FULL JOIN pg_stat_replication r
			 ON (r.pid, r.usesysid, r.usename, r.application_name, r.backend_start)
			  = (w.pid, w.usesysid, w.usename, w.application_name, w.backend_start)
		  WHERE w.pid IS NULL OR r.pid IS NULL'),
	0,
	'a standby: the rows are those of pg_stat_replication');

$primary->append_conf('postgresql.conf',
	"synchronous_standby_names = 'standby'");
$primary->reload;
$row = $observer->await_walsender(q{application_name = 'standby'},
	sub { $_->{sync_priority} == 1 });
ok($row, 'synchronous: sync_priority is 1');

# core forgets it when there has been nothing to flush for a while
ok( $observer->poll(
		sub {
			$observer->run(q{SELECT pg_logical_emit_message(true, 'a', 'b')});
			(   $observer->value(
					'SELECT abs(w.flush_lag - extract(epoch FROM r.flush_lag) * 1000) < 0.002
					   FROM pgnetlat_walsenders w JOIN pg_stat_replication r USING (pid)'
				) // '') eq 't';
		}),
	q{synchronous: flush_lag is core's, in milliseconds});
$primary->append_conf('postgresql.conf', q{synchronous_standby_names = ''});
$primary->reload;

# ---------------------------------------------------------------------------
# Over TCP
# ---------------------------------------------------------------------------

my $wal = stream(application_name => 'wal');
my $of_wal = 'pid = ' . $wal->pid;
my $before = $observer->await_walsender($of_wal);
SKIP:
{
	skip 'this kernel does not report sockets of other processes', 1
	  unless defined $before->{busy_time};

	is($before->{client_addr},
		'127.0.0.1', "TCP: client_addr is the client's");
	cmp_ok($before->{rtt}, '>', 0, 'TCP: the path has a round trip');

	# every byte that this end has received the other has seen acknowledged
	pause(100);
	$wal->take(10_000_000);
	my $received = $wal->received;
	($before) = $observer->walsenders($of_wal);
	write_wal(3);
	ok( $observer->poll(
			sub {
				$wal->take(10_000_000);
				($row) = $observer->walsenders($of_wal);
				my $arrived = $wal->received - $received;
				return
					 $arrived > 3_000_000
				  && $row->{bytes_acked} - $before->{bytes_acked} == $arrived
				  && $row->{bytes_queued} == 0;
			}),
		'TCP: every byte received is in bytes_acked')
	  or diag(
		$row->{bytes_acked} - $before->{bytes_acked},
		' of ',
		$wal->received - $received);

	# nothing to send
	($before) = $observer->walsenders($of_wal);
	my $at_least = pause(300);
	($row) = $observer->walsenders($of_wal);
	cmp_ok(
		$row->{sender_time} - $before->{sender_time},
		'>=',
		0.9 * $at_least,
		'idle: nearly all time is sender_time');

	# A receiver that does not read: more than both kernels hold is on its way.
	write_wal(32);
	$before = $observer->await_walsender($of_wal,
		sub { $_->{bytes_queued} > 0 and $_->{receiver_limited_time} > 0 });
	ok($before, "deaf: the receiver's window closes");
	pause(500);
	($before) = $observer->walsenders($of_wal);
	pause(500);
	($row) = $observer->walsenders($of_wal);
	my %gain = map { $_ => $row->{$_} - $before->{$_} }
	  qw(total_time receiver_limited_time sender_time);
	cmp_ok(
		$gain{receiver_limited_time},
		'>=',
		0.96 * $gain{total_time},
		'deaf: all of the time is the receiver\'s');
	cmp_ok($gain{sender_time}, '<', 5,
		'deaf: none of the time is the sender\'s');
	cmp_ok($row->{bytes_queued}, '>', 0, 'deaf: bytes are queued');
	ok( $observer->poll(
			sub {
				$wal->take(10_000_000);
				($row) = $observer->walsenders($of_wal);
				return $row->{bytes_queued} == 0
				  && $wal->received > 32_000_000;
			}),
		'deaf: it gets everything when it reads');

	# two of them
	my $second = stream(application_name => 'wal');
	my $acked = q{SELECT sum(bytes_acked) FROM pgnetlat_walsenders
		WHERE application_name = 'wal'};
	my $sum = $observer->value($acked);
	($row) = $observer->rows(
		q{SELECT * FROM pgnetlat_replication WHERE application_name = 'wal'});
	is($row->{walsenders}, 2, 'by receiver: two walsenders are counted');
	cmp_ok($row->{bytes_acked}, '>=', $sum,
		'by receiver: the sum of bytes_acked is not too low');
	cmp_ok(
		$row->{bytes_acked}, '<=',
		$observer->value($acked),
		'by receiver: the sum of bytes_acked is not too high');
	my $pid = $second->pid;
	$second->finish;
	ok($observer->poll(sub { !$observer->walsenders("pid = $pid") }),
		'a walsender that has ended has no row');
	is( $observer->value(
			"SELECT count(*) FROM pgnetlat_walsender_sockets() WHERE pid = $pid"
		),
		0,
		'a walsender that has ended has no socket');
}

# ---------------------------------------------------------------------------
# A base backup, and logical replication, are walsenders like others
# ---------------------------------------------------------------------------

my $backup = IPC::Run::start(
	[
		'pg_basebackup',
		'-d',
		'host=127.0.0.1 port=' . $primary->port . ' application_name=archive',
		'--format=tar',
		'--pgdata=-',
		'--wal-method=none',
		'--no-manifest',
		'--checkpoint=fast',
		'--no-sync',
		'--max-rate=1M'
	],
	'<',
	\undef,
	'>',
	\my $archive,
	'2>',
	\my $said);
$row = $observer->await_walsender(q{application_name = 'archive'},
	sub { $_->{state} eq 'backup' and ($_->{bytes_acked} // 1) > 0 });
ok($row, 'base backup: its walsender has a row') or diag($said);
$backup->kill_kill;

$observer->run(
	'CREATE TABLE t (i int)',
	'CREATE PUBLICATION p FOR TABLE t',
	q{SELECT pg_create_logical_replication_slot('decoded', 'pgoutput')});
my $changes = PgNetlat::Client->connect(
	$primary,
	tcp => 1,
	replication => 'database',
	application_name => 'changes');
$changes->put(
	query(
		q{START_REPLICATION SLOT decoded LOGICAL 0/0 (proto_version '1', publication_names 'p')}
	));
$changes->until('W');
$observer->run('INSERT INTO t SELECT generate_series(1, 20000)');
ok( $observer->poll(
		sub { $changes->take(10_000_000); $changes->received > 500_000 }),
	'logical: changes arrive');
ok( $observer->await_walsender(
		'pid = ' . $changes->pid,
		sub {
			($_->{bytes_acked} // $changes->received) >= $changes->received;
		}),
	'logical: every byte received is in bytes_acked');

# ---------------------------------------------------------------------------
# Privileges: as in pg_stat_replication
# ---------------------------------------------------------------------------

$observer->run(
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE reader LOGIN',
	'GRANT pg_monitor TO reader');
foreach my $role (qw(plain reader))
{
	my $caller = PgNetlat::Client->connect($primary, user => $role);
	my $seen = $caller->value(
		q{SELECT string_agg(DISTINCT key, ' ' ORDER BY key)
			FROM pgnetlat_walsenders x, jsonb_each(to_jsonb(x))
		   WHERE value <> 'null'});

	is( $caller->value('SELECT count(*) FROM pgnetlat_walsenders'),
		$caller->value('SELECT count(*) FROM pg_stat_replication'),
		"$role: there are as many rows as in pg_stat_replication");
	if ($role eq 'plain')
	{
		is( $seen,
			'application_name pid usename usesysid',
			"$role: hidden columns are NULL");
		is( $caller->value(
				'SELECT count(*) FROM pgnetlat_walsender_sockets()'),
			0,
			"$role: there are no sockets");
	}
	elsif (defined $observer->await_walsender($of_wal)->{rtt})
	{
		like($seen, qr/bytes_acked/,
			"$role: columns from the kernel are shown");
	}
}

no_violations($observer);
$_->finish foreach $wal, $changes;
$standby->stop;
$primary->stop;
done_testing();
