
# Copyright (c) 2026, the pgnetlat authors

# GSSAPI encryption, with tickets from a KDC of our own: the cost of connecting,
# and the account, which must be that of the same work without encryption.  A
# relay between client and server counts their turns, without understanding what
# they say.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PgNetlat::Kdc;
use PgNetlat::Observer;
use PgNetlat::Relay;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'server is built without GSSAPI'
  unless check_pg_config('#define ENABLE_GSS 1');
my $missing = PgNetlat::Kdc::missing();
plan skip_all => $missing if $missing;

# programs have their own names
delete @ENV{qw(PGAPPNAME PGGSSENCMODE PGSSLMODE)};

my $PASSWORD = 'battery staple';
my $kdc = PgNetlat::Kdc->start;
$kdc->add_user('ticketed', 'secret');
$kdc->log_in('ticketed', 'secret');

my $node = new_node('gss', conf => <<"EOC");
krb_server_keyfile = '${\ $kdc->keytab}'
password_encryption = 'scram-sha-256'
pgnetlat.idle_threshold = '1h'
EOC
unlink $node->data_dir . '/pg_hba.conf';
$node->append_conf('pg_hba.conf', <<'EOC');
local all all trust
hostgssenc all trusted 127.0.0.1/32 trust
hostgssenc all scrammed 127.0.0.1/32 scram-sha-256
host all ticketed 127.0.0.1/32 gss include_realm=0
hostnogssenc all trusted 127.0.0.1/32 trust
EOC
$node->start;
my $observer = PgNetlat::Observer->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE TABLE t (i int)',
	'GRANT ALL ON t TO PUBLIC');
$observer->run("CREATE ROLE $_ LOGIN PASSWORD '$PASSWORD'")
  foreach qw(trusted scrammed ticketed);
$ENV{PGPASSWORD} = $PASSWORD;

# how long this relay holds back what a client says, in milliseconds
my $DELAY = 200;
my $relay = PgNetlat::Relay->start($node);
my $slow_relay = PgNetlat::Relay->start($node, delay => $DELAY);

# so that COPY data does not arrive before it is asked for
my $late_relay = PgNetlat::Relay->start($node, delay => 50);

sub connection_string
{
	my ($through, $name, $settings) = @_;

	return
		'host='
	  . $kdc->server_name
	  . ' hostaddr=127.0.0.1 port='
	  . $through->port
	  . " dbname=postgres sslmode=disable application_name=$name $settings";
}

my @CONNECT = qw(connections connect_round_trips connect_time connect_tls_time
  connect_auth_time);

# What a session that has ended has counted, and what its connection has cost; and
# what the relay has seen of it.
sub counted
{
	my ($name, $truth) = @_;
	my $account = $observer->ended($name);
	my ($row) =
	  $observer->rows('SELECT '
		  . join(', ', map { "sum(${_}::numeric)::float8 AS $_" } @CONNECT)
		  . " FROM pgnetlat_clients WHERE application_name = '$name'");

	is($row->{connections}, 1, "$name: one connection is counted");

	# TCP's own is no turn of anybody who speaks through the relay
	is( $row->{connect_round_trips} + $account->{round_trips},
		1 + $truth->{turns},
		"$name: every turn is a round trip");
	return { %$account, %$row, truth => $truth };
}

# psql runs a script; what was counted then.
sub psql
{
	my ($through, $name, $settings, $script) = @_;

	$node->safe_psql('postgres', $script,
		connstr => connection_string($through, $name, $settings));
	return counted($name, $through->ended);
}

# ---------------------------------------------------------------------------
# What a connection costs
# ---------------------------------------------------------------------------

# TCP's own round trip, that of the startup packet, the request for encryption
# and its handshake, a question of GSSAPI's, and two of SCRAM
my @connections = (
	[ 'plain', 'user=trusted gssencmode=disable', 2 ],
	[ 'encrypted', 'user=trusted gssencmode=require', 4 ],
	[ 'ticket', 'user=ticketed gssencmode=require', 4 ],
	[ 'ticket_alone', 'user=ticketed gssencmode=disable', 3 ],
	[ 'preferred', 'user=ticketed gssencmode=prefer', 4 ],
	[ 'password', 'user=scrammed gssencmode=require', 6 ]);

foreach my $case (@connections)
{
	my ($name, $settings, $trips) = @$case;
	my $is_encrypted = $settings !~ /disable/;
	my $question =
	  'SELECT transport FROM pgnetlat_sessions WHERE pid = pg_backend_pid()';
	my $c = psql($relay, $name, $settings, $question);

	is($c->{connect_round_trips},
		$trips, "$name: $trips round trips are counted");
	if ($is_encrypted)
	{
		cmp_ok($c->{connect_tls_time},
			'>', 0, "$name: connect_tls_time is not zero");
	}
	else
	{
		is($c->{connect_tls_time}, 0, "$name: connect_tls_time is zero");
	}
	is( $node->safe_psql(
			'postgres', $question,
			connstr => connection_string($node, "asks_$name", $settings)),
		$is_encrypted ? 'gss' : 'tcp',
		"$name: the session's transport is right");

	# A client that takes its time, but for TCP's handshake.  The first turn of it
	# may pass while the server still forks; and a server that gets no
	# processor does not wait for anybody.
	next unless $name =~ /^(plain|encrypted|password)$/;
	$c = psql($slow_relay, "slow_$name", $settings, 'SELECT 1');
	is($c->{connect_round_trips},
		$trips, "slow_$name: $trips round trips are counted");
	at_least(
		$c->{connect_time},
		$DELAY * ($trips - 1) / 2,
		"slow_$name: connect_time has the client's pauses");
	at_least($c->{connect_tls_time},
		$DELAY * 2, "slow_$name: connect_tls_time has the client's pauses")
	  if $is_encrypted;
	at_least($c->{connect_auth_time},
		$DELAY * 2, "slow_$name: connect_auth_time has the client's pauses")
	  if $name eq 'password';
}

# ---------------------------------------------------------------------------
# The same work, with and without
# ---------------------------------------------------------------------------

# An exchange each; COPY has two turns.  Long texts take several of GSSAPI's packets,
# of 16 kB each.
my $long = 'x' x 60_000;
my $work = <<"EOC";
SELECT 1;
SELECT repeat('x', 200000);
SELECT length('$long');
BEGIN;
INSERT INTO t VALUES (1);
COMMIT;
\\copy t from program 'echo 1'
COPY (SELECT generate_series(1, 1000)) TO STDOUT;
SELECT generate_series(1, 20000);
EOC

# names of the same length, for the server says them
my $plain =
  psql($late_relay, 'is_plain', 'user=trusted gssencmode=disable', $work);
my $gss =
  psql($late_relay, 'with_gss', 'user=trusted gssencmode=require', $work);

foreach my $c ($plain, $gss)
{
	my $name = $c == $gss ? 'with encryption' : 'without encryption';

	is($c->{requests}, 9, "$name: every request is counted");
	is($c->{statements}, 9, "$name: every statement is counted");
	is($c->{round_trips}, 10, "$name: every round trip is counted");
	is($c->{transactions}, 7, "$name: every transaction is counted");
	is($c->{pipelined}, 0, "$name: no request counts as pipelined");
}
is($gss->{bytes_sent}, $plain->{bytes_sent},
	'bytes_sent is before encryption');

SKIP:
{
	skip 'the kernel does not count bytes', 2
	  unless $plain->{bytes_received} > 0;

	# to the kernel, the end of the connection may be a byte
	foreach my $c ($plain, $gss)
	{
		my $more = $c->{bytes_received} - $c->{truth}{to_server};

		ok($more == 0 || $more == 1,
			'bytes_received is what came over the wire')
		  or diag("$c->{bytes_received}, not $c->{truth}{to_server}");
	}
}

# requests that the client does send before it has heard the answer
append_to_file($node->basedir . '/pipeline.sql', <<'EOC');
\startpipeline
SELECT 1;
SELECT repeat('x', 20000);
SELECT 3;
\endpipeline
EOC
my %pipeline;
foreach my $mode (qw(disable require))
{
	my $name = "pipeline_$mode";

	command_ok(
		[
			'pgbench',
			'-n',
			'-M',
			'extended',
			'-t',
			'20',
			'-f',
			$node->basedir . '/pipeline.sql',
			connection_string($node, $name, "user=trusted gssencmode=$mode")
		],
		"$name: pgbench succeeds");
	$observer->poll(
		sub {
			$pipeline{$mode} = $observer->ended($name);
			return $pipeline{$mode} && $pipeline{$mode}{requests} >= 20;
		});
	is( $pipeline{$mode}{statements},
		3 * $pipeline{$mode}{requests},
		"$name: each pipeline has three statements");
}
is( $pipeline{require}{$_},
	$pipeline{disable}{$_},
	"pipeline: $_ are the same as without encryption"
) foreach qw(requests round_trips pipelined statements transactions);

# ---------------------------------------------------------------------------
# A session that lives
# ---------------------------------------------------------------------------

my $PAUSE = 100;
my ($stdin, $stdout) = ('', '');
my $session = IPC::Run::start(
	[
		'psql',
		'-XAtq',
		'-d',
		connection_string($node, 'alive', 'user=trusted gssencmode=require')
	],
	'<',
	\$stdin,
	'>',
	\$stdout,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

# One statement; what it returned.
sub ask
{
	my ($sql, $answer) = @_;

	$stdout = '';
	$stdin .= "$sql;\n";
	$session->pump until $stdout =~ /^($answer)$/m;
	return $1;
}

my $pid = ask('SELECT pg_backend_pid()', qr/\d+/);
my $before = $observer->settled($pid, 1);
my $paused = 0;

for my $i (2 .. 6)
{
	$paused += pause($PAUSE);
	ask("SELECT $i", $i);
	$observer->settled($pid, $i);
}
my $gain = delta($before, $observer->settled($pid, 6));
is($gain->{requests}, 5, 'alive: every request is counted');
is($gain->{round_trips}, 5, 'alive: every round trip is counted');
is($gain->{pipelined}, 0, 'alive: no request counts as pipelined');
at_least($gain->{client_time} + $gain->{network_time},
	$paused, "alive: the client's pauses are a wait");
ask(q{SELECT 'slept' FROM pg_sleep(0.2)}, 'slept');
$before = $observer->settled($pid, 7);
ask(q{SELECT 'slept' FROM pg_sleep(0.2)}, 'slept');
$gain = delta($before, $observer->settled($pid, 8));
at_least($gain->{exec_time}, 200, "alive: the server's work is execution");
SKIP:
{
	skip 'this kernel reports no round trip', 2 unless defined $before->{rtt};
	cmp_ok($before->{rtt}, '>', 0, 'alive: the path has a round trip');
	cmp_ok($before->{network_time},
		'>', 0, 'alive: the wait has the round trip');
}
$session->finish;

no_violations($observer);
$_->stop foreach $relay, $slow_relay, $late_relay;
$node->stop;
$kdc->stop;
done_testing();
