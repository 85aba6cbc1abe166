
# Copyright (c) 2026, the pgnetlat authors

# Corner cases of the protocol: cancel requests, LISTEN, large objects, versions,
# direct TLS.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# programs have their own names
delete $ENV{PGAPPNAME};

my ($node, $observer) =
  start_node('corner_cases', conf => "pgnetlat.idle_threshold = '1h'\n");
my ($major) = $observer->value('SHOW server_version_num') =~ /^(\d\d)/;

# Sessions and connections of all clients, failed ones included.
sub connections
{
	return $observer->value(
		q{SELECT concat_ws(' ', sum(sessions + ended_sessions), sum(connections),
				(SELECT sum(failed_connections) FROM pgnetlat_failed_connections))
			FROM pgnetlat_clients});
}

# ---------------------------------------------------------------------------
# Cancel requests: connections that are neither sessions nor failures
# ---------------------------------------------------------------------------

foreach my $tcp (0, 1)
{
	my $over = $tcp ? 'TCP' : 'a Unix-domain socket';
	my $client = PgNetlat::Client->connect($node, tcp => $tcp);
	my $before = $observer->settled($client);
	my $known = connections();
	my $account;

	$client->put(query('SELECT pg_sleep(600)'));
	ok( $observer->await(
			$client->pid,
			sub { $_->{exec_time} >= $before->{exec_time} + 200 }),
		"cancel request over $over: a statement is executing");
	$client->cancel;
	like((grep { $_->{type} eq 'E' } $client->until('Z'))[0]{error}{C},
		qr/^57014$/, "cancel request over $over: the statement is cancelled");
	$account = delta($before, $observer->settled($client));
	is($account->{requests}, 1,
		"cancel request over $over: one exchange is counted");
	is($account->{transactions},
		1, "cancel request over $over: one transaction is counted");
	is($account->{statements},
		0, "cancel request over $over: no complete statement is counted");
	at_least($account->{exec_time}, 200,
		"cancel request over $over: its statement has execution time");

	# one more, with a key that is wrong: the server only logs that
	my $offset = log_size($node);
	$client->{secret} = "\0" x length $client->secret;
	$client->cancel;
	ok( $observer->poll(
			sub {
				server_log($node, $offset) =~ /wrong key in cancel request/;
			}),
		"cancel request over $over: the server logs a wrong key");
	is(connections(), $known,
		"cancel request over $over: no session or connection is counted");
	$client->finish;
}

# ---------------------------------------------------------------------------
# LISTEN: a client that waits for notifications is not slow
# ---------------------------------------------------------------------------

my $client = PgNetlat::Client->connect($node, application_name => 'listens');
my $other = PgNetlat::Client->connect($node);
$client->run('LISTEN here');

# It works when it is told to, and for as long as the server does.
my $listened = 0;
my $before = $observer->settled($client);
for (1 .. 5)
{
	$listened += pause(500);
	$other->run('NOTIFY here');
	is($client->read_message->{type},
		'A', 'LISTEN: the client gets a notification');
	$client->run('SELECT pg_sleep(0.3)');
}
my $gain = delta($before, $observer->settled($client));
is($gain->{requests}, 5,
	'LISTEN: one request for each notification is counted');
is($gain->{round_trips}, 5,
	'LISTEN: one round trip for each notification is counted');
at_least($gain->{idle_time}, $listened,
	'LISTEN: waiting for a notification is idle time');
at_most_beside(
	$gain->{client_time} + $gain->{network_time},
	$listened + 1500,
	$gain, 'LISTEN: waiting for a notification is not client time');
SKIP:
{
	my $now = $observer->value(
		q{SELECT bar FROM pgnetlat_now WHERE pid = } . $client->pid);

	skip 'the client is really slow on this machine', 1
	  if $gain->{client_time} > 500;
	$now //= '';
	cmp_ok(
		$now =~ tr/.//,
		'<',
		$now =~ tr/#!+//,
		'LISTEN: pgnetlat_now does not show the client as the bottleneck');
}

# what comes in a transaction waits for its end, and divides nothing
$client->run('BEGIN');
$before = $observer->settled($client);
$other->run('NOTIFY here');
$listened = pause(200);
$client->run('COMMIT');
$client->run('SELECT 1');
$gain = delta($before, $observer->settled($client));
at_least($gain->{client_time}, $listened,
	'LISTEN: waiting in a transaction is client time');
$client->finish;

# nothing is in progress in which it could come
$client = PgNetlat::Client->connect($node);
$client->run('LISTEN here');
$before = $observer->settled($client);
$client->put(close_('S', 'x'), flush());
$client->until('3');
$observer->settled($client, $before->{requests} + 1);
$other->run('NOTIFY here');
$client->until('A');
$listened = pause(200);
like($observer->account($client->pid)->{state},
	qr/^(waiting|idle)$/, 'LISTEN, after Close and Flush: the session waits');
$client->put(sync());
$client->responses;
$gain =
  delta($before, $observer->settled($client, $before->{requests} + 2));
is($gain->{transactions}, 0,
	'LISTEN, after Close and Flush: no transaction is counted');
at_most_beside($gain->{recv_time} + $gain->{exec_time},
	$listened, $gain, 'LISTEN, after Close and Flush: the pause is a wait');
$client->finish;

# An error that no Sync follows: the server receives, also if a notification comes.
$client = PgNetlat::Client->connect($node, application_name => 'no sync');
$client->run('LISTEN here');
$client->put(parse('', 'SELEC'), flush());
$client->until('E');
for (1 .. 3)
{
	my $seen = $observer->account($client->pid)->{recv_time};

	ok( $observer->await(
			$client->pid, sub { $_->{recv_time} >= $seen + 300 }),
		'LISTEN, error without Sync: the session receives');
	$observer->client('no sync');
	$other->run('NOTIFY here');
	$client->until('A');
}
$gain = $observer->client('no sync');
at_least($gain->{recv_time}, 900,
	'LISTEN, error without Sync: the group has the time as recv_time');
cmp_ok(
	$gain->{exec_time}, '<',
	$gain->{recv_time} / 2,
	'LISTEN, error without Sync: it has it once');
$client->put(sync());
$client->responses;
is($observer->settled($client)->{requests},
	2, 'LISTEN, error without Sync: every request is counted');
$client->finish;

# ---------------------------------------------------------------------------
# Flush: what the flush before it was for says nothing about it
# ---------------------------------------------------------------------------

# The response to Flush has as many bytes as the one before it with ReadyForQuery.
$client = PgNetlat::Client->connect($node);
$client->put(parse('s', 'SELECT $1::text'), sync());
$client->responses;
$client->put(bind_('', 's', 'x'), execute(''), sync());
$client->responses;
$client->put(bind_('', 's', 'x' . ' ' x 6), execute(''), flush());
$client->until('C');
ok( $observer->await(
		$client->pid, sub { $_->{state} eq 'waiting in transaction' }),
	'Flush, after a response of the same length: the transaction is open');
$client->put(sync());
$client->responses;
$client->finish;

# Behind Flush, the next request is in the kernel when the response leaves.
foreach my $close ('', close_('S', 'x'))
{
	my $behind = 'request behind Sync, Flush' . ($close && ' and Close');

	$client = PgNetlat::Client->connect($node);
	$before = $observer->settled($client);
	$observer->run('SELECT pg_advisory_lock(1)');
	$client->put(extended('SELECT pg_advisory_xact_lock(1)'),
		sync(), flush(), $close);
	ok($observer->await($client->pid, sub { defined $_->{blocked_by} }),
		"$behind: the one before it waits for a lock");
	$client->put(extended('SELECT 1'), sync());
	$observer->run('SELECT pg_advisory_unlock(1)');
	$client->responses(2);
	$gain =
	  delta($before, $observer->settled($client, $before->{requests} + 2));
	is($gain->{pipelined}, 1, "$behind: it is pipelined");
	is($gain->{round_trips}, 1, "$behind: one round trip is counted");
	$client->finish;
}

# ---------------------------------------------------------------------------
# Function calls: libpq's large objects
# ---------------------------------------------------------------------------

# BEGIN, a query for the functions' OIDs, create, open, 13 pieces of 8 kB, close,
# COMMIT
my $file = $node->basedir . '/large';
append_to_file($file, 'x' x 100_000);
$node->safe_psql(
	'postgres', "\\lo_import '$file'",
	extra_params => ['--no-psqlrc'],
	connstr => 'host='
	  . $node->host
	  . ' port='
	  . $node->port
	  . ' dbname=postgres application_name=large_object');
my $sum = $observer->ended('large_object');
is($sum->{requests}, 19, 'large object: each call is a request');
is($sum->{statements}, 19, 'large object: each call is a statement');
is($sum->{round_trips}, 19, 'large object: each call is a round trip');
is($sum->{transactions}, 1, 'large object: all calls are one transaction');

# ---------------------------------------------------------------------------
# Versions of the protocol
# ---------------------------------------------------------------------------

foreach my $minor (0, 2, 9)
{
	my $name = "protocol 3.$minor";
	my $newest = $major >= 18 ? 2 : 0;
	my $speaker = PgNetlat::Client->connect(
		$node,
		protocol => 0x30000 + $minor,
		application_name => $name);
	my $received = $speaker->received;
	my $account = $observer->settled($speaker);

	if ($minor > $newest)
	{
		is($speaker->negotiated & 0xFFFF,
			$newest, "$name: the server negotiates 3.$newest");
	}
	else
	{
		is($speaker->negotiated, undef,
			"$name: the server accepts the version");
	}
	is( length $speaker->secret,
		$newest == 2 && $minor >= 2 ? 32 : 4,
		"$name: the cancel key has the length of that version");
	$speaker->run(('SELECT 1') x 5);
	$gain = delta($account, $observer->settled($speaker));
	is($gain->{requests}, 5, "$name: every request is counted");
	is( $gain->{bytes_sent},
		$speaker->received - $received,
		"$name: every byte is counted");
	$speaker->put(query('SELECT pg_sleep(600)'));
	$observer->await($speaker->pid, sub { $_->{state} eq 'executing' });
	$speaker->cancel;
	ok((grep { $_->{type} eq 'E' } $speaker->until('Z')),
		"$name: the key cancels a statement");
	is( $observer->settled($speaker)->{requests},
		6 + $account->{requests},
		"$name: the cancelled request is counted");
	$speaker->finish;
}

# ---------------------------------------------------------------------------
# Direct TLS
# ---------------------------------------------------------------------------

SKIP:
{
	skip 'direct TLS needs PostgreSQL 17', 4 if $major < 17;
	my $why = no_tls($node);
	skip $why, 4 if $why;

	configure_tls($node);
	$node->reload;

	foreach my $negotiation (qw(postgres direct))
	{
		my $transport = '';

		# the server may not have read its settings yet
		$observer->poll(
			sub {
				my ($code, $out) = $node->psql(
					'postgres',
					join("\n",
						('SELECT 1;') x 3,
						'SELECT transport FROM pgnetlat_sessions WHERE pid = pg_backend_pid();'
					),
					connstr => 'host=127.0.0.1 port='
					  . $node->port
					  . " dbname=postgres sslmode=require sslnegotiation=$negotiation application_name=$negotiation"
				);
				$transport = $out // '';
				return $code == 0;
			});
		like($transport, qr/^tls$/m,
			"TLS, $negotiation: the session's transport is tls");
		is($observer->ended($negotiation)->{requests},
			4, "TLS, $negotiation: every request is counted");
	}
}

no_violations($observer);
$node->stop;
done_testing();
