
# Copyright (c) 2026, the pgnetlat authors

# A real pgbouncer, in its three pooling modes, over TCP and over the server's
# Unix-domain socket: its client's name and address, who owns the waits, and
# which exchanges are pgbouncer's own.

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
use Socket qw(:all);
use Test::More;

my ($program) =
  grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin',
  '/usr/local/sbin';
plan skip_all => 'pgbouncer is not installed' unless $program;
plan skip_all => 'pgbouncer does not run as root' if $> == 0;

my ($node, $observer) = start_node('pgbouncer', conf => <<'EOC');
pgnetlat.idle_threshold = '1h'
EOC

my $PAUSE = 50;

# A pooler with one server connection; is connected to as if it was a node.
sub start_pgbouncer
{
	my ($mode, $host, $conf) = @_;
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $directory = PostgreSQL::Test::Utils::tempdir;
	my $user = getpwuid($<);
	my $server = $node->port;

	append_to_file("$directory/ini", <<EOC . ($conf // ''));
[databases]
* = host=$host port=$server user=$user pool_size=1

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = $mode
application_name_add_host = 1
logfile = $directory/log
EOC
	my $self = bless { port => $port }, 'Pooler';
	my $out = '';

	$self->{process} = IPC::Run::start([ $program, '-q', "$directory/ini" ],
		'<', \undef, '>', \$out, '2>&1');
	$observer->poll(
		sub {
			socket(my $socket, PF_INET, SOCK_STREAM, 0) or return;
			return
			  CORE::connect($socket,
				pack_sockaddr_in($port, inet_aton('127.0.0.1')));
		}) or die "pgbouncer does not listen: $out\n";
	return $self;
}

sub Pooler::port { return $_[0]->{port}; }
sub Pooler::host { return '127.0.0.1'; }

sub Pooler::client
{
	my ($self, $name) = @_;

	# what pgbouncer does not track it does not take
	return PgNetlat::Client->connect(
		$self,
		tcp => 1,
		application_name => $name,
		startup => [qw(user database application_name)]);
}

sub Pooler::stop
{
	my ($self) = @_;

	$self->{process}->kill_kill;
	return $observer->poll(
		sub {
			!$observer->value(
				q{SELECT count(*) FROM pgnetlat_sessions
				   WHERE application_name <> 'observer'});
		});
}

# Which backend is it, and what has it counted?
sub server_of { return $_[0]->value('SELECT pg_backend_pid()'); }

# An account whose session has nothing to do.
sub quiet
{
	my ($pid) = @_;
	my $requests = -1;

	return $observer->await(
		$pid,
		sub {
			my $same = $_->{requests} == $requests
			  && $_->{state} =~ /^(waiting|waiting in transaction|idle)$/;
			$requests = $_->{requests};
			return $same;
		});
}

sub gain_of_pause
{
	my ($pid, $do) = @_;
	my $before = quiet($pid);

	pause($PAUSE);
	$do->();
	return delta($before, quiet($pid));
}

sub labels
{
	my ($name, $pooler) = @_;
	my @rows = $observer->clients("application_name = '$name'");

	is(scalar @rows, 1, "$name is one group");
	is($rows[0]->{client_addr},
		'127.0.0.1', "the group of $name has the client's address");
	is($rows[0]->{pooler_addr},
		$pooler, "the group of $name has the pooler's address");
	return $rows[0];
}

foreach my $host ('127.0.0.1', $node->host)
{
	my $over = $host =~ m{^/} ? 'the socket' : 'TCP';
	my $pooler_addr = $host =~ m{^/} ? undef : $host;

	# -----------------------------------------------------------------------
	# Transaction pooling
	# -----------------------------------------------------------------------
	my $pooler = start_pgbouncer('transaction', $host);
	my $one = $pooler->client('one');
	my $two = $pooler->client('two');
	my $pid = server_of($one);

	is(server_of($two), $pid,
		"transaction pooling over $over: both clients share a connection");
	my $gain = gain_of_pause($pid, sub { $one->run('SELECT 1') });
	at_least($gain->{idle_time}, $PAUSE,
		'transaction pooling: the wait between two is idle time');
	cmp_ok($gain->{client_time}, '==', 0,
		'transaction pooling: the wait between two is not client time');
	cmp_ok($gain->{pooler_requests},
		'==', 1, "transaction pooling: pgbouncer's SET is its own exchange");
	cmp_ok($gain->{requests}, '==', 2,
		"transaction pooling: SET and the client's request are counted");

	$one->run('BEGIN');
	$gain = gain_of_pause($pid, sub { $one->run('SELECT 1') });
	at_least($gain->{client_time} + $gain->{network_time},
		$PAUSE,
		"transaction pooling: in a transaction the wait is the client's");
	cmp_ok($gain->{idle_time}, '==', 0,
		'transaction pooling: in a transaction no wait is idle time');

	my $account = quiet($pid);
	is($account->{application_name},
		'one', "transaction pooling: the session has the client's name");
	is($account->{client_addr},
		'127.0.0.1',
		"transaction pooling: the session has the client's address");
	is( $account->{client_port},
		(unpack_sockaddr_in(getsockname($one->{socket})))[0],
		"transaction pooling: the session has the client's port");
	is($account->{pooler_addr},
		$pooler_addr,
		"transaction pooling: the session has the pooler's address");
  SKIP:
	{
		skip 'this kernel does not report it', 1 unless $^O eq 'linux';

		# asked for again now and then, if the session has something to do
		ok( $observer->poll(
				sub {
					$one->run('SELECT 1');
					return $observer->account($pid)->{client_rtt};
				}),
			'transaction pooling: the session has client_rtt');
	}
	$one->run('COMMIT');
	labels($_, $pooler_addr) foreach qw(one two);

	# each with a port of its own
	foreach (1 .. 20)
	{
		my $many = $pooler->client('many');
		$many->run('SELECT 1');
		$many->finish;
	}
	quiet($pid);
	my $row = labels('many', $pooler_addr);
	cmp_ok($row->{requests}, '>=', 39,
		'transaction pooling: connections from many ports are one group');
	cmp_ok($row->{pooler_requests},
		'>=', 19,
		'transaction pooling: pgbouncer sets the name for each connection');
	$_->finish foreach $one, $two;
	$pooler->stop;
	$observer->run('SELECT pgnetlat_reset()');

	# -----------------------------------------------------------------------
	# Session pooling
	# -----------------------------------------------------------------------
	$pooler = start_pgbouncer('session', $host);
	$one = $pooler->client('one');
	$pid = server_of($one);
	$gain = gain_of_pause($pid, sub { $one->run('SELECT 1') });
	at_least($gain->{client_time} + $gain->{network_time},
		$PAUSE, 'session pooling: the wait is the client\'s');
	cmp_ok($gain->{idle_time}, '==', 0,
		'session pooling: no wait is idle time');
	cmp_ok($gain->{pooler_requests},
		'==', 0, "session pooling: no request is pgbouncer's");
	my $requests = quiet($pid)->{requests};
	$one->finish;
	ok( $observer->await($pid, sub { $_->{requests} > $requests }),
		'session pooling: pgbouncer cleans up when the client leaves');
	$gain = gain_of_pause(
		$pid,
		sub {
			$two = $pooler->client('two');
			$two->run('SELECT 1');
		});
	is(server_of($two), $pid,
		'session pooling: pgbouncer uses the connection again');
	at_least($gain->{idle_time}, $PAUSE,
		'session pooling: the wait between two clients is idle time');
	cmp_ok($gain->{pooler_requests},
		'==', 1, 'session pooling: pgbouncer sets the next client\'s name');
	$gain = gain_of_pause($pid, sub { $two->run('SELECT 1') });
	at_least($gain->{client_time} + $gain->{network_time},
		$PAUSE, "session pooling: the wait is the next client's");
	labels($_, $pooler_addr) foreach qw(one two);
	$two->finish;
	$pooler->stop;
	$observer->run('SELECT pgnetlat_reset()');
}

# ---------------------------------------------------------------------------
# Statement pooling, which is so for each statement; and its checks
# ---------------------------------------------------------------------------
my $pooler = start_pgbouncer('statement', '127.0.0.1', <<'EOC');
server_check_delay = 0
server_check_query = select 1
EOC
my $one = $pooler->client('one');
my $two = $pooler->client('two');
my $pid = server_of($one);
$two->run('SELECT 1');
my $gain = gain_of_pause($pid, sub { $one->run('SELECT 1') });
at_least($gain->{idle_time}, $PAUSE,
	'statement pooling: the wait is idle time');
cmp_ok($gain->{client_time}, '==', 0,
	'statement pooling: no wait is client time');
cmp_ok($gain->{pooler_requests},
	'>=', 2, "statement pooling: the check and SET are pgbouncer's");
cmp_ok($gain->{requests} - $gain->{pooler_requests},
	'==', 1, "statement pooling: one request is the client's");
$_->finish foreach $one, $two;
$pooler->stop;

# ---------------------------------------------------------------------------
# Check queries that must be configured, in each mode
# ---------------------------------------------------------------------------
my $check = 'select 2 /* pgbouncer */';

# pgbouncer checks, and sets the name; its client asks once
sub checked
{
	my ($account, $told, $how) = @_;

	if ($told)
	{
		cmp_ok($account->{pooler_requests},
			'>=', 2, "$how: the check is pgbouncer's");
		cmp_ok($account->{requests} - $account->{pooler_requests},
			'==', 1, "$how: no other exchange is pgbouncer's");
	}
	else
	{
		cmp_ok($account->{pooler_requests},
			'==', 1, "$how: the check looks like its client's");
		cmp_ok($account->{requests}, '>=', 3, "$how: the check is counted");
	}
	return;
}

foreach my $told (0, 1)
{
	$observer->run(
		'ALTER DATABASE postgres '
		  . (
			$told
			? "SET pgnetlat.pooler_check_query = '$check'"
			: 'RESET pgnetlat.pooler_check_query'));
	foreach my $mode (qw(statement transaction))
	{
		my $how = "$mode pooling, " . ($told ? 'told' : 'not told');

		$pooler = start_pgbouncer($mode, '127.0.0.1', <<"EOC");
server_check_delay = 0
server_check_query = $check
EOC
		$one = $pooler->client('one');
		$two = $pooler->client('two');
		$pid = server_of($one);

		# from the second one on it is known to be handed on
		$two->run('SELECT 1');
		$gain = gain_of_pause($pid, sub { $one->run('SELECT 1') });
		checked($gain, $told, $how);
		$_->finish foreach $one, $two;
		$pooler->stop;
	}

	# a connection that has been cleaned up is checked when it is old enough,
	# which pgbouncer finds out now and then
	my $how = 'session pooling, ' . ($told ? 'told' : 'not told');

	$pooler = start_pgbouncer('session', '127.0.0.1', <<"EOC");
server_check_delay = 1
server_check_query = $check
EOC
	$one = $pooler->client('one');
	$pid = server_of($one);
	for (1 .. 20)
	{
		my $before = quiet($pid);

		$one->finish;
		$observer->await($pid, sub { $_->{requests} > $before->{requests} });
		$before = quiet($pid);
		pause(1500);
		$one = $pooler->client('one');
		is(server_of($one), $pid, "$how: the connection is used again");
		$gain = delta($before, quiet($pid));
		last if $gain->{requests} > 2;
	}
	checked($gain, $told, $how);
	$one->finish;
	$pooler->stop;
}

# ---------------------------------------------------------------------------
# Repeated statements in autocommit: of one client, and of many
# ---------------------------------------------------------------------------
$observer->run(
	'CREATE TABLE t (i int PRIMARY KEY)',
	'INSERT INTO t SELECT generate_series(1, 1000)',
	'ANALYZE t');

sub list { return "SELECT i FROM t WHERE i > $_[0] ORDER BY i LIMIT 20"; }
sub item { return 'SELECT i FROM t WHERE i = ' . int(1 + rand(1000)); }

sub repeated_statements
{
	my ($load) = @_;

	$observer->run('SELECT pgnetlat_reset()');
	$load->();
	return $observer->rows(
		q{SELECT * FROM pgnetlat_diagnose() WHERE verdict = 'repeated statement'}
	);
}

# As an ORM does that loads what each of 20 rows refers to.  It needs some time for what
# it has got, from the list as well.
sub lazy_loading
{
	my ($client) = @_;

	foreach my $page (1 .. 40)
	{
		$client->run(list($page * 20)), pause(1);
		$client->run(item()), pause(1) foreach 1 .. 20;
	}
	return;
}

# Why a loop may look like many clients, or like one that thinks; nothing if it must not: no
# driver needs 5 ms between two statements, and to think for 0.1 s ends a burst.
sub too_busy
{
	my ($row) = $observer->rows(
		q{SELECT (SELECT min((network_time + client_time) / calls)
					FROM (SELECT * FROM pgnetlat_statements ORDER BY calls DESC LIMIT 2) s) AS wait,
				 (SELECT sum(count - bucket) FROM pgnetlat_histogram WHERE metric = 'client' AND le::float8 =
						 (SELECT max(le::float8) FROM pgnetlat_histogram WHERE le::float8 <= 0.1)) AS stalls}
	);

	return if $row->{wait} < 4 and $row->{stalls} < 4;
	return
	  "too busy: $row->{wait} ms pass between two statements, $row->{stalls} times more than 0.1 s";
}

foreach my $names (0, 1)
{
	my $how = $names ? 'with names' : 'without names';

	$pooler = start_pgbouncer('transaction', '127.0.0.1',
		"application_name_add_host = $names\n");
	my @client = map { $pooler->client('orm') } 1 .. 20;

	# so that the connection is known to be handed on
	$_->run('SELECT 1') foreach @client;

	my (@found, $calm, $busy);
	for (1 .. 5)
	{
		@found = repeated_statements(sub { lazy_loading($client[0]) });
		last if @found;
		$busy = too_busy();
		$calm ||= !$busy;
	}
	if ($names)
	{
		# which takes much more, since all the server sees is its own time
		my $repeats =
		  $observer->value('SELECT max(repeats) FROM pgnetlat_statements');
		cmp_ok($repeats, '>', 400, "a loop of one client, $how: it repeats");
	}
	else
	{
	  SKIP:
		{
			skip $busy, 2 if !@found and !$calm;
			is(scalar(@found), 1,
				"a loop of one client, $how: it is a repeated statement");
			like(
				$found[0]{evidence},
				qr/ repeat an earlier one, for the rows of statement .* i = /,
				"a loop of one client, $how: the evidence has the statement");
		}
	}

	# one list for 20 items, in any order
	@found = repeated_statements(
		sub {
			foreach (1 .. 1000)
			{
				$client[ rand(20) ]
				  ->run(rand() < 1 / 21 ? list(int(rand(900))) : item());
				pause(1);
			}
		});
	is(scalar(@found), 0,
		"single calls of many clients, $how: no repeated statement")
	  or diag(explain(\@found));
	if ($names)
	{
		my $repeats =
		  $observer->value('SELECT max(repeats) FROM pgnetlat_statements');
		cmp_ok($repeats, '<', 20,
			"single calls of many clients, $how: none repeats");
	}
	$_->finish foreach @client;
	$pooler->stop;
}

no_violations($observer);
$observer->finish;
$node->stop;

done_testing();
