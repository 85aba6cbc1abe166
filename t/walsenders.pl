
# Copyright (c) 2026, the pgnetlat authors

# Walsenders: where their time goes, and what their receivers cost.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# programs have their own names
delete $ENV{PGAPPNAME};

my ($primary, $observer) = start_node(
	'primary',
	init => { allows_streaming => 'logical' },
	conf => "wal_sender_timeout = 0\n");
$observer->run('CREATE TABLE t (i int)');
my $standby = start_standby('standby', $primary);
my $on_standby = PgNetlat::Client->connect($standby);

sub current_lsn
{
	return $observer->value('SELECT pg_current_wal_flush_lsn()');
}

# So many megabytes of WAL.
sub write_wal
{
	my ($megabytes) = @_;

	$observer->run(
		qq{SELECT pg_logical_emit_message(true, 'pgnetlat', repeat('x', 1000000))
			 FROM generate_series(1, $megabytes)});
	return;
}

# The walsender's row once it has nothing more to send and has counted all that
# its client has received, of which "before" was before it counted; undef if that
# never happens.
sub all_counted
{
	my ($client, $before) = @_;

	return $observer->await_walsender(
		'pid = ' . $client->pid,
		sub {
			$client->take(10_000_000);
			return $_->{state} eq 'idle'
			  && $_->{bytes_sent} == $client->received - $before;
		});
}

# ---------------------------------------------------------------------------
# A standby
# ---------------------------------------------------------------------------

my $row = $observer->await_walsender(q{application_name = 'standby'},
	sub { $_->{state} eq 'idle' and $_->{idle_time} > 0 });
ok($row, 'a standby: its walsender is idle');
is($row->{kind}, 'physical', 'a standby: physical replication');
is($row->{transport}, 'unix', 'a standby: transport');
is($row->{client_port}, -1, 'a standby: no port on a Unix-domain socket');
is($row->{sync_priority}, 0, 'a standby: commits do not wait for it');
is($row->{exec_replication_time}, undef, 'a standby: nor does anybody else');

foreach (qw(client_addr rtt srtt rtt_at retransmits packets_sent))
{
	is($row->{$_}, undef, "a standby: $_ is NULL on a Unix-domain socket");
}
is( $observer->value(
		'SELECT count(*) FROM pgnetlat_walsenders w
		   FULL JOIN pg_stat_replication r
			 ON (r.pid, r.usesysid, r.usename, r.application_name, r.backend_start)
			  = (w.pid, w.usesysid, w.usename, w.application_name, w.backend_start)
		  WHERE w.pid IS NULL OR r.pid IS NULL'),
	0,
	'a standby: it is who pg_stat_replication says');

# It stops: what was waited for it is its work, since there is no network.
$primary->append_conf('postgresql.conf',
	"synchronous_standby_names = 'standby'");
$primary->reload;
$row = $observer->await_walsender(q{application_name = 'standby'},
	sub { $_->{sync_priority} == 1 });
ok($row, 'synchronous: sync_priority');
my $client = PgNetlat::Client->connect($primary);
$client->run('INSERT INTO t VALUES (1)');
my $receiver;
ok( $observer->poll(
		sub {
			$receiver =
			  $on_standby->value('SELECT pid FROM pg_stat_wal_receiver');
		}),
	'synchronous: the standby has a receiver');
my ($before, $account, $waited);

# core tells of the latest flush only: where its confirmation is read together
# with that of what has been sent meanwhile, this one is not counted
foreach my $attempt (1 .. 10)
{
	$before = $observer->await_walsender(q{application_name = 'standby'},
		sub { $_->{flushes} > 0 });
	$account = $observer->settled($client);
	kill 'STOP', $receiver;
	$client->put(query(q{SELECT pg_logical_emit_message(true, 'a', 'b')}));
	ok( $observer->await(
			$client->pid,
			sub {
				$_->{exec_replication_time} >=
				  $account->{exec_replication_time} + 400;
			}),
		'synchronous: a commit waits for the standby');
	kill 'CONT', $receiver;
	$client->responses;
	$waited = delta($account, $observer->settled($client));
	$row = $observer->await_walsender(q{application_name = 'standby'},
		sub { $_->{flushes} > $before->{flushes} });
	my $gain = $row->{flush_time} - $before->{flush_time};

	# the commit, or the walsender, may have had to wait for a processor, too
	last
	  if $gain >= 400 && $gain >= $waited->{exec_replication_time} - 50;
}
cmp_ok(
	$row->{flush_time}, '>=',
	$before->{flush_time} + 400,
	'synchronous: the flush took as long');
$client->run('INSERT INTO t VALUES (2)');
cmp_ok($row->{flushes}, '>', $before->{flushes}, 'synchronous: flushes');
cmp_ok($row->{replies}, '>=', $row->{flushes}, 'synchronous: replies');
is($row->{flush_network_time}, 0, 'synchronous: no network took part');
cmp_ok(
	$row->{flush_time} - $before->{flush_time},
	'>=',
	$waited->{exec_replication_time} - 50,
	'synchronous: what the commit has waited is in it');
cmp_ok(
	$row->{exec_replication_time},
	'>=',
	$waited->{exec_replication_time},
	'synchronous: what sessions have waited is beside it');

# core forgets it when there has been nothing to flush for a while
ok( $observer->poll(
		sub {
			$client->run(q{SELECT pg_logical_emit_message(true, 'a', 'b')});
			'f' eq $observer->value(
				'SELECT coalesce(abs(w.flush_lag - extract(epoch FROM r.flush_lag) * 1000) > 0.002, true)
				   FROM pgnetlat_walsenders w JOIN pg_stat_replication r USING (pid)'
			);
		}),
	q{synchronous: flush_lag is core's});
$primary->append_conf('postgresql.conf', q{synchronous_standby_names = ''});
$primary->reload;

# ---------------------------------------------------------------------------
# Every byte
# ---------------------------------------------------------------------------

# Physical, over TCP
my $lsn = current_lsn();
my $wal = PgNetlat::Client->connect(
	$primary,
	tcp => 1,
	replication => 'true',
	application_name => 'wal');
my $received = $wal->received;
my $which = 'pid = ' . $wal->pid;
$row = $observer->await_walsender($which);
is($row->{kind}, 'commands', 'bytes: has done nothing yet');
is($row->{bytes_sent}, 0, 'bytes: and sent nothing');
$wal->put(query('IDENTIFY_SYSTEM'));
$wal->responses;
$row = all_counted($wal, $received);
ok($row, 'bytes: of a command, every one is counted');
is($row->{kind}, 'commands', 'bytes: which is no more than that');
$wal->put(query("START_REPLICATION PHYSICAL $lsn"));
$wal->until('W');
write_wal(3);
ok( $observer->poll(
		sub { $wal->take(10_000_000); $wal->received > 3_000_000 }),
	'bytes: WAL arrives');
$row = all_counted($wal, $received);
ok($row, 'bytes: of WAL, every one is counted');
is($row->{kind}, 'physical', 'bytes: physical replication');
is($row->{transport}, 'tcp', 'bytes: over TCP');
is($row->{client_addr}, '127.0.0.1', 'bytes: from here');
SKIP:
{
	skip 'no round trip from this kernel', 3 unless defined $row->{rtt};
	cmp_ok($row->{rtt}, '>', 0, 'the path has a round trip');
	cmp_ok($row->{packets_sent}, '>', 0, 'and packets');
	ok(defined $row->{rtt_at}, 'and it is known since when');
}

# Logical, and a message after the other
$observer->run('CREATE PUBLICATION p FOR TABLE t',
	q{SELECT pg_create_logical_replication_slot('decoded', 'pgoutput')});
my $changes = PgNetlat::Client->connect(
	$primary,
	replication => 'database',
	application_name => 'changes');
$received = $changes->received;
$changes->put(
	query(
		q{START_REPLICATION SLOT decoded LOGICAL 0/0 (proto_version '1', publication_names 'p')}
	));
$changes->until('W');
$client->run('INSERT INTO t SELECT generate_series(1, 20000)');
ok( $observer->poll(
		sub { $changes->take(10_000_000); $changes->received > 500_000 }),
	'logical: changes arrive');
$row = all_counted($changes, $received);
ok($row, 'logical: every byte is counted');
is($row->{kind}, 'logical', 'logical replication');
ok( $observer->await_walsender(
		'pid = ' . $changes->pid,
		sub { $_->{state} eq 'idle' }),
	'logical: it is idle when there is nothing to decode');

# A base backup is as large as its archive; what is beside that are headers of
# messages, 32 kB each, and the frame: names, progress, positions.
my $backup = $primary->basedir . '/base.tar';
my $result = IPC::Run::run(
	[
		'pg_basebackup',
		'-d',
		'host='
		  . $primary->host
		  . ' port='
		  . $primary->port
		  . ' application_name=archive',
		'--format=tar',
		'--pgdata=-',
		'--wal-method=none',
		'--no-manifest',
		'--checkpoint=fast',
		'--no-sync'
	],
	'<',
	\undef,
	'>', $backup, '2>',
	\my $said);
ok($result, 'base backup: works') or diag($said);
my $group;
$observer->poll(
	sub {
		($group) = $observer->replication(
			q{kind = 'base backup'
			  AND application_name = 'archive' AND ended_walsenders = 1});
		return $group;
	});
ok($group, 'base backup: its walsender has ended, and is not forgotten');
cmp_ok(
	$group->{bytes_sent}, '>=',
	(-s $backup) - 10240,
	'base backup: all of the archive was sent');
cmp_ok(
	$group->{bytes_sent}, '<=',
	(-s $backup) * 1.001 + 10_000,
	'base backup: and little else');
is($group->{pending_time}, 0, 'base backup: nothing is pending any more');

# ---------------------------------------------------------------------------
# A subscription
# ---------------------------------------------------------------------------

$observer->run('CREATE DATABASE subscriber');
my $subscriber = PgNetlat::Client->connect($primary, dbname => 'subscriber');
$subscriber->run('CREATE TABLE t (i int)');
my $connection =
  'host=' . $primary->host . ' port=' . $primary->port . ' dbname=postgres';
$observer->run(
	q{SELECT pg_create_logical_replication_slot('sub', 'pgoutput')});
$subscriber->run(
	"CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION p
	 WITH (create_slot = false, slot_name = 'sub')");
ok( $observer->await_walsender(
		q{application_name = 'sub'},
		sub { $_->{kind} eq 'logical' and $_->{replies} > 0 }),
	'a subscription: its apply worker replies');
ok( $observer->poll(
		sub { $subscriber->value('SELECT count(*) FROM t') == 20002 }),
	'a subscription: its table is copied');
$subscriber->run(
	'ALTER SUBSCRIPTION sub DISABLE',
	'ALTER SUBSCRIPTION sub SET (slot_name = NONE)',
	'DROP SUBSCRIPTION sub');
ok( $observer->poll(
		sub { !$observer->walsenders(q{application_name = 'sub'}) }),
	'a subscription: its walsender ends');
($group) =
  $observer->replication(q{kind = 'logical' AND application_name = 'sub'});
cmp_ok($group->{ended_walsenders}, '>=', 1, 'and is not forgotten');

# ---------------------------------------------------------------------------
# Receivers that do not receive
# ---------------------------------------------------------------------------

# If the receiver is not blamed: what is the walsender's row then, and what does the
# kernel say?
sub what_is_known
{
	my ($which) = @_;
	my ($row) = $observer->walsenders($which);

	return
	  join(' ', map { "$_=" . ($row->{$_} // 'NULL') } sort keys %$row) . "\n"
	  . `ss -tin state established '( sport = ${\ $primary->port} )' 2>&1`;
}

# All that a receiver blocks is blamed on it: from when it is seen blocked to a
# while later, hardly anything is the network's.
sub blamed_on_receiver
{
	my ($which, $who, $goes_on) = @_;
	my ($from, $to, $blocked);

	# more than both kernels hold, so that it stays so
	write_wal(32);
	$from = $observer->await_walsender($which,
		sub { $_->{state} eq 'sending' and $_->{send_client_time} > 50 });
	ok($from, "$who: the walsender is blocked")
	  or diag(what_is_known($which));

	# what has passed since the sampler looked the last time is not known yet
	$blocked = sub {
		return $_->{total_time} - $_->{pending_time} - $from->{total_time} +
		  $from->{pending_time};
	};
	$to = $observer->await_walsender(
		$which,
		sub {
			my $gain = $_->{send_client_time} - $from->{send_client_time};
			return $gain >= 400 && $gain >= 0.96 * ($blocked->() - 20);
		});
	ok($to, "$who: all of it by its receiver") or diag(what_is_known($which));
	is($to->{state}, 'sending', "$who: all the time");
	is($to->{idle_time}, $from->{idle_time}, "$who: which is not idle");
	$goes_on->();
	ok($observer->await_walsender($which, sub { $_->{state} eq 'idle' }),
		"$who: and then goes on");
	return;
}

my $deaf = PgNetlat::Client->connect($primary, replication => 'true');
$received = $deaf->received;
$deaf->put(query('START_REPLICATION PHYSICAL ' . current_lsn()));
$deaf->until('W');
blamed_on_receiver(
	'pid = ' . $deaf->pid,
	'a client that reads nothing, over a Unix-domain socket',
	sub { ok(all_counted($deaf, $received), 'and gets every byte') });
$deaf->finish;

SKIP:
{
	skip 'no round trip from this kernel', 6
	  unless defined $observer->await_walsender('pid = ' . $wal->pid)->{rtt};

	my $folder = $primary->basedir . '/received';
	mkdir $folder;
	my $receiver = IPC::Run::start(
		[
			'pg_receivewal', '-h', '127.0.0.1', '-p',
			$primary->port, '-D', $folder, '--no-loop',
			'--no-sync'
		],
		'<',
		\undef,
		'>',
		\my $out,
		'2>',
		\my $err);
	ok( $observer->await_walsender(
			q{application_name = 'pg_receivewal'},
			sub { $_->{kind} eq 'physical' and $_->{state} eq 'idle' }),
		'pg_receivewal: is served') or diag($err);
	$receiver->signal('STOP');
	blamed_on_receiver(
		q{application_name = 'pg_receivewal'},
		'pg_receivewal stopped',
		sub { $receiver->signal('CONT') });

	# each message has up to 128 kB of WAL, and 30 bytes around it
	($row) = $observer->walsenders(q{application_name = 'pg_receivewal'});
	my $segments = $observer->value(
		q{SELECT pg_size_bytes(current_setting('wal_segment_size'))});
	my $wal_bytes = 0;
	ok( $observer->poll(
			sub {
				$wal_bytes = $observer->value(
					qq{SELECT pg_wal_lsn_diff(sent_lsn, '0/0') % $segments
						 FROM pg_stat_replication WHERE application_name = 'pg_receivewal'}
				);
				my @full = grep { !/partial/ } glob "$folder/0*";
				$wal_bytes += @full * $segments;
				($row) =
				  $observer->walsenders(
					q{application_name = 'pg_receivewal'});
				return $row->{bytes_sent} >= $wal_bytes
				  && $row->{bytes_sent} <= $wal_bytes * 1.01 + 10_000;
			}),
		'pg_receivewal: as many bytes as it got'
	) or diag("$row->{bytes_sent} of $wal_bytes");
	$receiver->signal('TERM');
	$receiver->finish;
	ok( $observer->poll(
			sub {
				!$observer->walsenders(q{application_name = 'pg_receivewal'});
			}),
		'pg_receivewal: its walsender ends with it');
}

# ---------------------------------------------------------------------------
# Resets, and switching counting off
# ---------------------------------------------------------------------------

my $reset = $observer->value('SELECT pgnetlat_reset()');
$observer->forget_replication;
($row) = $observer->walsenders(q{application_name = 'standby'});
is($row->{stats_since}, $reset, 'reset: counting begins with it');
cmp_ok(
	$row->{total_time},
	'<=',
	$observer->value(
		"SELECT extract(epoch FROM clock_timestamp() - '$reset') * 1000") +
	  0.1,
	'reset: and nothing is left of the time before');
is( $observer->value(
		'SELECT sum(ended_walsenders) FROM pgnetlat_replication'),
	0,
	'reset: those that have ended are forgotten');

$observer->expect_clock(0);
$primary->append_conf('postgresql.conf', 'pgnetlat.enabled = off');
$primary->reload;
$on_standby->run('SELECT 1');
ok( $observer->poll(
		sub {
			$observer->run('CREATE TABLE x AS SELECT 1', 'DROP TABLE x');
			$observer->walsenders(
				q{application_name = 'standby' AND state = 'disabled'});
		}),
	'disabled: a walsender notices');
($before) = $observer->walsenders(q{application_name = 'standby'});
write_wal(1);
$primary->wait_for_catchup($standby);
($row) = $observer->walsenders(q{application_name = 'standby'});
is($row->{$_}, $before->{$_}, "disabled: $_ stays")
  foreach qw(total_time bytes_sent replies);
$primary->append_conf('postgresql.conf', 'pgnetlat.enabled = on');
$primary->reload;
ok( $observer->poll(
		sub {
			$observer->run('CREATE TABLE x AS SELECT 1', 'DROP TABLE x');
			$observer->walsenders(
				q{application_name = 'standby' AND state <> 'disabled'
				  AND bytes_sent > } . $row->{bytes_sent});
		}),
	'enabled again: it goes on');
$observer->expect_clock(1);

# ---------------------------------------------------------------------------
# Who may see what
# ---------------------------------------------------------------------------

$observer->run(
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE reader LOGIN',
	'GRANT pg_read_all_stats TO reader');
my %public = (
	walsenders => [qw(pid usesysid usename application_name)],
	replication => [qw(kind application_name)]);
foreach my $role (qw(plain reader))
{
	my $caller = PgNetlat::Client->connect($primary, user => $role);

	foreach my $view (sort keys %public)
	{
		my $names = join ',', @{ $public{$view} };
		my $seen = $caller->value(
			"SELECT string_agg(DISTINCT key, ' ')
			   FROM pgnetlat_$view x, jsonb_each(to_jsonb(x))
			  WHERE value <> 'null' AND key <> ALL ('{$names}')") // '';

		cmp_ok($caller->value("SELECT count(*) FROM pgnetlat_$view"),
			'>', 0, "$role: pgnetlat_$view has rows");
		if ($role eq 'plain')
		{
			is($seen, '', "$role: which hide what they should");
		}
		else
		{
			like($seen, qr/bytes_sent/, "$role: which show everything");
		}
	}
}

no_violations($observer);
$_->finish foreach $wal, $changes;
$standby->stop;
$primary->stop;
done_testing();
