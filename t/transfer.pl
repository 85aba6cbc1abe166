
# Copyright (c) 2026, the pgnetlat authors

# Time of the network and of the client inside exchanges: COPY in both
# directions, and readers that do not read.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(min);
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) =
  start_node('transfer', conf => "pgnetlat.idle_threshold = '1h'\n");
$observer->run('CREATE TABLE lines (line text)',
	'CREATE TABLE asked (line text)');

# ---------------------------------------------------------------------------
# COPY FROM STDIN
# ---------------------------------------------------------------------------

# What waits for the client in mid-exchange is sampled, so up to a tick or two
# may be missing at its ends.
my $client = PgNetlat::Client->connect($node);
my $before = $observer->settled($client);
$client->put(query('COPY lines FROM STDIN'));
$client->until('G');
$client->put(copy_data("one\n"));
my $seen = $observer->await($client->pid,
	sub { $_->{state} eq 'receiving' and $_->{recv_time} >= 250 });
ok($seen, 'COPY FROM STDIN: receiving shows while it lasts');
$client->put(copy_data("two\n"));
pause(300);
$client->put(copy_data("three\n"), copy_done());
$client->responses;
my $gain = delta($before, $observer->settled($client));
is($gain->{requests}, 1, 'COPY FROM STDIN: it is one exchange');
is($gain->{statements}, 1, 'COPY FROM STDIN: it is one statement');
cmp_ok($gain->{recv_time}, '>=', 350,
	'COPY FROM STDIN: the pauses are recv_time');
cmp_ok($gain->{exec_time}, '<', $gain->{recv_time},
	'COPY FROM STDIN: the pauses are not execution');
is($observer->value('SELECT count(*) FROM lines'),
	3, 'COPY FROM STDIN: the table has its lines');

# A client that never pauses: everything has arrived before COPY begins.
$before = $observer->settled($client);
$client->put(
	query('COPY lines FROM STDIN'),
	copy_data("line\n") x 1000,
	copy_done());
$client->responses;
$gain = delta($before, $observer->settled($client));
is($gain->{requests}, 1, 'COPY without pauses: it is one exchange');
is($gain->{statements}, 1, 'COPY without pauses: it is one statement');

$before = $observer->settled($client);
$client->put(query('COPY lines FROM STDIN'));
$client->until('G');
$client->put(copy_data("never\n"), copy_fail('changed my mind'));
like(
	(grep { $_->{type} eq 'E' } $client->until('Z'))[0]{error}{M},
	qr/changed my mind/,
	"failed COPY: the error is the client's");
$gain = delta($before, $observer->settled($client));
is($gain->{requests}, 1, 'failed COPY: it is one exchange');

# in the extended protocol
$before = $observer->settled($client);
$client->put(extended('COPY lines FROM STDIN'), sync());
$client->until('G');
pause(400);
$client->put(copy_data("four\n"), copy_done(), sync());
$client->responses;
$gain = delta($before, $observer->settled($client));
is($gain->{statements}, 1,
	'COPY in the extended protocol: it is one statement');
cmp_ok($gain->{recv_time}, '>=', 250,
	'COPY in the extended protocol: the pause is recv_time');

# the statement has its first wait, too
my $waiting = PgNetlat::Client->connect($node);
$waiting->put(query('COPY lines (line) FROM STDIN'));
$waiting->until('G');
ok($observer->await($waiting->pid, sub { $_->{recv_time} >= 300 }),
	'first wait of a COPY: it counts while it lasts');
$waiting->put(copy_done());
$waiting->responses;
$seen = $observer->settled($waiting);
cmp_ok($seen->{recv_time}, '>=', 250,
	'first wait of a COPY: it is recv_time afterwards');
$waiting->run('SELECT 1');
cmp_ok(
	$observer->value(
		'SELECT s.recv_time FROM pgnetlat_statements s JOIN pgnetlat_recent('
		  . $waiting->pid
		  . ') r USING (queryid) WHERE r.recv_time > 0') // 0,
	'>=', 250,
	'first wait of a COPY: the statement has it');
$waiting->finish;

# The server does not wait for a client that need not send anything: of several
# attempts, the machine does not delay all.
$observer->run(
	'CREATE TABLE refused (line text)',
	q{CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
	  AS 'BEGIN RAISE ''no''; END'},
	'CREATE TRIGGER refuse BEFORE INSERT ON refused
	 FOR EACH STATEMENT EXECUTE FUNCTION refuse()',
	q{CREATE FUNCTION sleep_long() RETURNS trigger LANGUAGE plpgsql
	  AS 'BEGIN PERFORM pg_sleep(2); RETURN NULL; END'},
	'CREATE TABLE slowly (line text)',
	'CREATE TRIGGER sleep AFTER INSERT ON slowly
	 FOR EACH STATEMENT EXECUTE FUNCTION sleep_long()');
foreach my $tcp (0, 1)
{
	my $over = $tcp ? ', TCP' : '';
	my $refused = PgNetlat::Client->connect($node, tcp => $tcp);
	my @took;

	for (1 .. 5)
	{
		my $start = now();

		$refused->put(query('COPY refused FROM STDIN'));
		$refused->until('Z');
		push @took, now() - $start;
	}
	cmp_ok(min(@took), '<', 900,
		"COPY that fails at once$over: nothing waits");
	is($observer->settled($refused)->{requests},
		5, "COPY that fails at once$over: every request is counted");
	$refused->finish;

	# The next statement comes from another task of the client while the COPY still
	# works: it waits for no response.
	my $pipelining = PgNetlat::Client->connect($node, tcp => $tcp);

	$pipelining->put(parse('copy', 'COPY slowly FROM STDIN'), sync());
	$pipelining->responses;
	$before = $observer->settled($pipelining);
	$pipelining->put(bind_('', 'copy'), execute(''), sync());
	$pipelining->until('G');
	$pipelining->put(copy_data("one\n"), copy_done(), sync());
	$observer->await($pipelining->pid,
		sub { $_->{state} eq 'executing' and $_->{exec_time} >= 500 });
	$pipelining->put(query('SELECT 1'));
	$pipelining->responses(2);
	$pipelining->run('SELECT 1');
	$gain = delta($before, $observer->settled($pipelining));
	is($gain->{pipelined}, 1,
		"request pipelined behind COPY$over: it is pipelined");
	is($gain->{round_trips}, 3,
		"request pipelined behind COPY$over: it costs no round trip");
	$pipelining->finish;
}

# The round trip of the invitation is the account's, and its statement's.
SKIP:
{
	my $asked = PgNetlat::Client->connect(
		$node,
		tcp => 1,
		application_name => 'asked');
	my $rtt = $observer->settled($asked)->{rtt};
	my $copies = 20;

	skip 'this kernel reports no round trip', 3 unless defined $rtt;
	for (1 .. $copies)
	{
		$asked->put(query('COPY asked FROM STDIN'));
		$asked->until('G');
		pause(2);
		$asked->put(copy_data("one\n"), copy_done());
		$asked->responses;
	}
	$asked->finish;

	my $group = $observer->ended('asked');
	my ($statement) =
	  $observer->rows(
		q{SELECT * FROM pgnetlat_statements WHERE calls = 20 ORDER BY network_time DESC LIMIT 1}
	  );

	is( $group->{round_trips},
		2 * $copies,
		'small COPY commands: each has the round trip of its invitation');
	cmp_ok($group->{network_time},
		'>', 0, 'small COPY commands: network time has round trips');
	cmp_ok(
		abs($statement->{network_time} - $group->{network_time}),
		'<=',
		$group->{network_time} / $copies,
		'small COPY commands: the statement has all of them but the wait before the first'
	);
}

# ---------------------------------------------------------------------------
# COPY TO STDOUT
# ---------------------------------------------------------------------------

$before = $observer->settled($client);
my $received = $client->received;
$client->put(
	query(
		q{COPY (SELECT repeat('x', 100) FROM generate_series(1, 50000)) TO STDOUT}
	));
$client->responses;
$gain = delta($before, $observer->settled($client));
is($gain->{requests}, 1, 'COPY TO STDOUT: it is one exchange');
is($gain->{statements}, 1, 'COPY TO STDOUT: it is one statement');
is( $gain->{bytes_sent},
	$client->received - $received,
	'COPY TO STDOUT: every byte is counted');

# ---------------------------------------------------------------------------
# Readers that do not read
# ---------------------------------------------------------------------------

my $large =
  q{SELECT repeat('x', 10000) FROM generate_series(1, 2000)};    # 20 MB

foreach my $tcp (0, 1)
{
	my $over = $tcp ? 'TCP' : 'Unix socket';
	my %options = (tcp => $tcp, receive_buffer => 65536);

	my $reader = PgNetlat::Client->connect($node, %options);
	$before = $observer->settled($reader);
	$received = $reader->received;
	$reader->put(query($large));
	$seen = $observer->await($reader->pid,
		sub { $_->{state} eq 'sending' and $_->{send_time} >= 500 });
	ok($seen,
		"reader that does not read, $over: sending shows while it lasts");
	is($seen->{requests}, 0,
		"reader that does not read, $over: no request is counted meanwhile");

	if ($tcp)
	{
	  SKIP:
		{
			skip 'this kernel reports no round trip', 1
			  unless defined $seen->{rtt};
			my $blamed = $observer->await(
				$reader->pid,
				sub {
					$_->{state} eq 'sending'
					  and $_->{send_client_time} >= 250;
				});
			ok($blamed,
				'a stuck reader has send_client_time while it is stuck');
		}
	}
	$reader->responses;
	$gain = delta($before, $observer->settled($reader));
	is($gain->{requests}, 1,
		"reader that does not read, $over: one request is counted at last");
	cmp_ok($gain->{send_time}, '>=', 500,
		"reader that does not read, $over: its time is send_time");
	cmp_ok($gain->{exec_time}, '<', $gain->{send_time},
		"reader that does not read, $over: its time is not execution");
	is( $gain->{bytes_sent},
		$reader->received - $received,
		"reader that does not read, $over: every byte is counted");
	$reader->finish;

	# a cancel request cannot wake a backend that is stuck in send, but is not
	# lost
	$reader = PgNetlat::Client->connect($node, %options);
	$reader->put(
		query(qq{SELECT repeat('x', 10000) FROM generate_series(1, 100000)}));
	ok( $observer->await($reader->pid, sub { $_->{state} eq 'sending' }),
		"cancelled while sending, $over: the session is sending");
	$reader->cancel;
	my @messages = $reader->until('Z');
	ok((grep { $_->{type} eq 'E' } @messages),
		"cancelled while sending, $over: the client gets the error");
	my $settled = $observer->settled($reader);
	is($settled->{requests}, 1,
		"cancelled while sending, $over: one exchange is counted");
	$reader->finish;

	# the client vanishes in the middle
	$reader = PgNetlat::Client->connect($node, %options,
		application_name => "vanishes_$tcp");
	$reader->put(query($large));
	$seen = $observer->await($reader->pid,
		sub { $_->{state} eq 'sending' and $_->{send_time} >= 300 });
	ok($seen, "client that vanishes, $over: the session is sending");
	$reader->vanish;
	my $sum = $observer->ended("vanishes_$tcp");
	ok($sum, "client that vanishes, $over: the session ends");
	cmp_ok($sum->{send_time}, '>=', $seen->{send_time},
		"client that vanishes, $over: its sending is kept");
	cmp_ok($sum->{total_time}, '>=', $seen->{total_time},
		"client that vanishes, $over: its time is kept");
}

# A reader that takes 2 MB a second, in small pieces: its window is never closed for
# long, but nothing else limits the sender.
SKIP:
{
	my $slow =
	  PgNetlat::Client->connect($node, tcp => 1, receive_buffer => 65536);
	my $until = now() + 2000;

	skip 'this kernel reports no round trip', 1
	  unless defined $observer->settled($slow)->{rtt};
	$slow->put(query($large));
	while (now() < $until)
	{
		$slow->take(20_000);
		pause(10);
	}
	$seen = $observer->account($slow->pid);
	cmp_ok(
		$seen->{send_client_time},
		'>=',
		0.8 * $seen->{send_blocked_time},
		"reader of small pieces: most blocked time is the client's");
	$slow->vanish;
}

# A reader that is slow, looked at all the time: what is blamed on it while it
# blocks the server stays blamed on it when the server goes on.
foreach my $tcp (0, 1)
{
	my $slow =
	  PgNetlat::Client->connect($node, tcp => $tcp, receive_buffer => 65536);
	my $until;

	$slow->put(query($large));
	$until = now() + 1500;
	while (now() < $until)
	{
		$slow->take(200_000);
		$observer->account($slow->pid) for 1 .. 3;
		pause(5);
	}
	$slow->responses;
	$seen = $observer->settled($slow);
	is($seen->{requests}, 1, 'slow reader: one exchange is counted');
	cmp_ok($seen->{send_blocked_time},
		'>', 0, 'slow reader: the server was blocked');
	$slow->finish;
}

# a single row is sent in one go
my $row = PgNetlat::Client->connect($node, receive_buffer => 65536);
$row->put(query(q{SELECT repeat('x', 30000000)}));
$observer->await($row->pid, sub { $_->{state} eq 'sending' });
my $not_read = pause(500);
$row->responses;
at_least($observer->settled($row->pid, 1)->{send_client_time},
	$not_read, 'a large row: send_client_time has the pause');
$row->finish;

# the profile knows the state as well
my $reader =
  PgNetlat::Client->connect($node, tcp => 1, receive_buffer => 65536);
$reader->put(query($large));
ok( $observer->poll(
		sub {
			(   $observer->value(
					q{SELECT sum(time) FROM pgnetlat_waits
					  WHERE state = 'sending' AND wait_event = 'ClientWrite'
						AND pid = } . $reader->pid) // 0) > 200;
		}),
	'ClientWrite is in the profile while sending');
$reader->responses;

# ---------------------------------------------------------------------------
# A large result that the kernel takes at once: the drain belongs to the wait
# ---------------------------------------------------------------------------

$reader = PgNetlat::Client->connect($node, tcp => 1, receive_buffer => 16384);
$before = $observer->settled($reader);
$reader->put(query(q{SELECT repeat('x', 300000)}));
my $paused = pause(500);
$reader->responses;
$reader->run('SELECT 1');
$gain = delta($before, $observer->settled($reader));
at_least(waited($gain) + $gain->{send_time},
	$paused, 'a response in the kernel: the wait is network or client time');
at_most_beside($gain->{exec_time}, $paused, $gain,
	'a response in the kernel: the pause is not execution');

# Once the response has left, the wait goes on; its end must be seen even while
# the request that ended it has sent nothing yet.
$reader->run('SET pgnetlat.idle_threshold = 20');
$reader->put(query(q{SELECT repeat('x', 300000)}));
pause(100);
$reader->responses;
$seen = $observer->await($reader->pid,
	sub { $_->{state} eq 'idle' and $_->{idle_time} > 0 });
ok($seen, 'a response that has left: the wait becomes idle');
$client->run('BEGIN', 'LOCK TABLE lines');
$reader->put(query('SELECT * FROM lines LIMIT 0'));
$seen = $observer->await($reader->pid, sub { $_->{state} eq 'executing' });
ok($seen, 'a response that has left: the lock wait after it is execution');
pause(100);
my $later = $observer->account($reader->pid);
is($later->{idle_time}, $seen->{idle_time},
	'a response that has left: the lock wait after it is not idle');
$client->run('COMMIT');
$reader->responses;
$observer->settled($reader);
$reader->run('RESET pgnetlat.idle_threshold');

# ---------------------------------------------------------------------------
# Small responses that the client does not read: even these block in the end
# ---------------------------------------------------------------------------

# Each request is sent when the response before it is in the kernel, so that no
# response is expected to block, and none is published as being sent.
my $deaf = PgNetlat::Client->connect($node);
my $sent = 0;
my $stuck;
while (!$stuck and $sent < 500)
{
	$deaf->put(query(q{SELECT repeat('x', 7000)}));
	$sent++;
	$stuck = $observer->await($deaf->pid,
		sub { $_->{requests} == $sent or $_->{state} eq 'sending' });
	undef $stuck if $stuck and $stuck->{state} ne 'sending';
}
ok($stuck, 'small responses that are not read: the state is sending');
pause(200);
$later = $observer->account($deaf->pid);
is($later->{state}, 'sending',
	'small responses that are not read: the state stays sending');
is($later->{exec_time}, $stuck->{exec_time},
	'small responses that are not read: exec_time does not grow');
at_least($later->{send_time} - $stuck->{send_time},
	200, 'small responses that are not read: send_time grows');
$deaf->responses foreach 1 .. $sent;
$gain = delta($stuck, $observer->settled($deaf, $sent));
at_least($gain->{send_time}, 200,
	'small responses that are not read: send_time stays afterwards');

# ---------------------------------------------------------------------------
# What the kernel knows of a connection
# ---------------------------------------------------------------------------

my $account = $observer->account($reader->pid);
is($account->{transport}, 'tcp', 'transport of a TCP connection is tcp');
SKIP:
{
	skip 'this kernel reports no round trip', 4
	  unless defined $account->{rtt};
	cmp_ok($account->{rtt}, '>', 0, 'round-trip time is positive');
	cmp_ok($account->{srtt}, '>=', $account->{rtt},
		'smoothed round-trip time is not below the minimum');
	$account = $observer->await($reader->pid,
		sub { $_->{bytes_received} > 0 and $_->{packets_received} > 0 });
	ok($account, 'bytes and packets received are known');
	ok(defined $account->{rtt_at}, 'rtt_at is known');
}

# pgnetlat.rtt_interval = -1: it is not asked for anything, not even by the sampler
# about a session that is blocked in sending
my $unasked = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	receive_buffer => 16384,
	options => '-c pgnetlat.rtt_interval=-1');
$unasked->put(
	query(q{SELECT repeat('x', 1000000) FROM generate_series(1, 20)}));
ok( $observer->await(
		$unasked->pid,
		sub { $_->{state} eq 'sending' and $_->{send_time} >= 200 }),
	'with rtt_interval = -1, a session is blocked in sending');
$unasked->responses;
$unasked->run('SELECT 1');
is($observer->account($unasked->pid)->{rtt_at},
	undef, 'with rtt_interval = -1, nothing is known from the kernel');

$account = $observer->account($client->pid);
is($account->{transport}, 'unix',
	'transport of a Unix-domain socket is unix');
foreach (
	qw(rtt srtt rtt_at retransmits bytes_received packets_sent
	packets_received client_addr))
{
	is($account->{$_}, undef, "$_ is NULL on a Unix-domain socket");
}

# A reset in the middle of a COPY: what comes is waited for from then on.
my $copier = PgNetlat::Client->connect($node);
$copier->put(query('COPY lines FROM STDIN'));
$copier->until('G');
pause(1200);
$observer->run('SELECT pgnetlat_reset()');
my $waited = pause(500);
$seen = $observer->account($copier->pid);
is($seen->{state}, 'receiving', 'COPY and a reset: the state is receiving');
at_least($seen->{recv_time} + $seen->{network_time},
	$waited, 'COPY and a reset: the time since is waiting for the client');
$copier->put(copy_done());
$copier->responses;
$seen = $observer->await($copier->pid, sub { $_->{requests} == 1 });
at_least($seen->{recv_time} + $seen->{network_time},
	$waited, 'COPY and a reset: that time stays afterwards');
$copier->finish;

no_violations($observer);
$node->stop;
done_testing();
