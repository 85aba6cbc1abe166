
# Copyright (c) 2026, the pgnetlat authors

# A connection pooler, played by the raw client: whose connection it is, who
# owns the waits, which exchanges are the pooler's own, and how far away its
# client is.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Socket qw(:all);
use Test::More;

# Only the pool's waits are idle here, and the kernel is asked only once.
my ($node, $observer) = start_node('poolers', conf => <<'EOC');
pgnetlat.idle_threshold = '1h'
pgnetlat.max_clients = 10
pgnetlat.rtt_interval = '1h'
EOC

my $on_linux = $^O eq 'linux';

sub group
{
	my ($application, $condition) = @_;
	my @rows = $observer->clients("application_name = '$application'"
		  . ($condition ? " AND $condition" : ''));

	is(scalar @rows, 1, "$application is one group")
	  or diag(join ' ', map { $_->{client_addr} // 'NULL' } @rows);
	return $rows[0];
}

# The client pauses for so long, in a transaction or not, and does something.
my $PAUSE = 30;

sub gain_of_pause
{
	my ($client, $sql) = @_;
	my $before = $observer->settled($client);

	pause($PAUSE);
	$client->run($sql);
	return delta($before, $observer->settled($client));
}

# ---------------------------------------------------------------------------
# Groups and labels
# ---------------------------------------------------------------------------

# many short connections, and one that is handed around
foreach my $port (1001 .. 1040)
{
	PgNetlat::Client->connect($node,
		application_name => "many - 10.0.0.7:$port")->finish;
}
$observer->ended('many', 40);
my $row = group('many');
is($row->{client_addr}, '10.0.0.7',
	"many connections: the group has the client's address");
is($row->{pooler_addr}, undef,
	'many connections: pooler_addr is NULL on a Unix-domain socket');
is($row->{ended_sessions}, 40, 'many connections: the group has all of them');
is($observer->value('SELECT clients_evicted FROM pgnetlat_info'),
	0, 'many connections: no group is evicted');

my $pooled = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	application_name => 'web - [2001:db8::7]:4000');
foreach my $port (1 .. 30)
{
	$pooled->run("SET application_name = 'web - [2001:db8::7]:$port'",
		'SELECT 1');
}
my $account = $observer->settled($pooled);
$row = group('web');
is($row->{client_addr}, '2001:db8::7',
	"IPv6: the group has the client's address");
is($row->{pooler_addr}, '127.0.0.1',
	"IPv6: the group has the pooler's address");
is($row->{requests}, 60, 'IPv6: the group has all requests');
is($row->{sessions}, 1, 'IPv6: the group has the session');
is($account->{application_name},
	'web', 'IPv6: the session has the client\'s name');
is($account->{client_addr},
	'2001:db8::7', 'IPv6: the session has the client\'s address');
is($account->{client_port},
	30, 'IPv6: the session has its current client\'s port');
is($account->{pooler_addr},
	'127.0.0.1', 'IPv6: the session has the pooler\'s address');
is($account->{pooler_requests},
	30, "IPv6: the session counts the pooler's own exchanges");
is($row->{pooler_requests},
	30, "IPv6: the group counts the pooler's own exchanges");
($row) = $observer->clients_window('1 min', q{application_name = 'web'});
is($row->{pooler_addr}, '127.0.0.1',
	"IPv6: the group over a window has the pooler's address");
is($observer->window('1 min', $pooled->pid)->{pooler_requests},
	30, "IPv6: the session over a window counts the pooler's own exchanges");
$pooled->finish;
$observer->ended('web');

# several forms, each a label
my %form = (
	'f1 - unix:6432' => [ 'f1', undef, -1 ],
	'f2 - unix(123@some.host):6432' => [ 'f2', undef, -1 ],
	'f3 - [::ffff:10.0.0.9]:77' => [ 'f3', '10.0.0.9', 77 ],
	'f4 - 10.0.0.1:5 - 10.0.0.2:6' => [ 'f4', '10.0.0.1', 5 ],
	' - 10.0.0.3:5' => [ '', '10.0.0.3', 5 ],
	'f5 - 10.0.0.300:5' => [ 'f5 - 10.0.0.300:5', undef, -1 ],
	'f6 - 10.0.0.3:5 ' => [ 'f6 - 10.0.0.3:5 ', undef, -1 ],
	'f7 10.0.0.3:5' => [ 'f7 10.0.0.3:5', undef, -1 ],

	# 63 bytes, and more: the port may have been cut off
	('x' x 46) . ' - 10.0.0.3:51034' => [ 'x' x 46, '10.0.0.3', undef ],
	('x' x 50) . ' - 10.0.0.3:51034' => [ 'x' x 50, '10.0.0.3', undef ],
	('x' x 55) . ' - 10.0.0.3:51034' => [ ('x' x 55) . ' - 10.0.', undef, -1 ]
);
foreach my $name (sort keys %form)
{
	my $client = PgNetlat::Client->connect($node, application_name => $name);

	$account = $observer->settled($client);
	is_deeply([ @$account{qw(application_name client_addr client_port)} ],
		$form{$name}, "application_name $name has the right label");
	$client->finish;
}

# not everybody may see from where
$observer->run('CREATE ROLE stranger LOGIN');
my $stranger = PgNetlat::Client->connect($node, user => 'stranger');
$pooled = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	application_name => 'secret - 10.0.0.7:1');
$observer->settled($pooled);
($row) = $stranger->rows(
	'SELECT * FROM pgnetlat_sessions WHERE pid = ' . $pooled->pid);
is($row->{application_name}, 'secret', 'another role sees the name');
is($row->{$_}, undef, "another role does not see $_ of the session")
  foreach qw(client_addr client_port pooler_addr client_rtt pooler_requests);
($row) = $stranger->rows(
	q{SELECT * FROM pgnetlat_clients WHERE application_name = 'secret'});
is($row->{$_}, undef, "another role does not see $_ of the group")
  foreach qw(client_addr pooler_addr);
$stranger->finish;

# switched off, a name is a name
my $reload = sub {
	my ($value) = @_;

	$observer->run("ALTER SYSTEM SET pgnetlat.pooler_suffix = $value",
		'SELECT pg_reload_conf()');
	$observer->poll(
		sub { $observer->value('SHOW pgnetlat.pooler_suffix') eq $value });

	# and the session has looked at it, if only behind its next exchange
	return $observer->poll(
		sub {
			$pooled->run('SELECT 1');
			return $pooled->value('SHOW pgnetlat.pooler_suffix') eq $value;
		});
};
$reload->('off');
$observer->settled($pooled);
is(group('secret - 10.0.0.7:1')->{client_addr},
	'127.0.0.1', 'switched off, the suffix is part of the name');
is( $observer->account($pooled->pid)->{application_name},
	'secret - 10.0.0.7:1',
	'switched off, the session shows the suffix, too');
$reload->('on');
is(group('secret', 'sessions = 1')->{client_addr},
	'10.0.0.7', 'switched on, the suffix is cut off');
is($observer->account($pooled->pid)->{pooler_requests},
	0, "with pooler_suffix off, no exchange is the pooler's own");
$pooled->finish;

# whoever holds a lock has the same label
my $holder =
  PgNetlat::Client->connect($node, application_name => 'holder - 10.0.0.7:1');
my $waiter = PgNetlat::Client->connect($node, application_name => 'waiter');
$observer->run('CREATE TABLE locked (i integer)');
$holder->run('BEGIN', 'LOCK locked');
$waiter->run('BEGIN');
$waiter->put(query('LOCK locked'));
ok( $observer->poll(
		sub {
			$observer->blockers(
				q{application_name = 'holder' AND client_addr = '10.0.0.7'});
		}),
	'a holder behind a pooler has its client\'s label');
like(
	$observer->value(
		'SELECT client FROM pgnetlat_now WHERE pid = ' . $holder->pid),
	qr/^holder\@10\.0\.0\.7$/,
	'pgnetlat_now has the client\'s label');
$holder->run('COMMIT');
$waiter->until('Z');
$_->finish foreach $holder, $waiter;

# ---------------------------------------------------------------------------
# Transaction pooling
# ---------------------------------------------------------------------------

$pooled = PgNetlat::Client->connect($node, application_name => '');
$pooled->run("SET application_name = 'shop - 10.0.0.1:1'", 'SELECT 1');
my $gain = gain_of_pause($pooled, 'SELECT 1');
at_least($gain->{client_time}, $PAUSE,
	'transaction pooling, one client: the pause is client time');

$pooled->run("SET application_name = 'shop - 10.0.0.2:1'");
$gain = gain_of_pause($pooled, 'SELECT 1');
at_least($gain->{idle_time}, $PAUSE,
	'transaction pooling, outside a transaction: the pause is idle time');
is($gain->{client_time}, 0,
	'transaction pooling, outside a transaction: no client time');
is($observer->settled($pooled)->{state},
	'idle',
	'transaction pooling, outside a transaction: the session is idle');

$pooled->run('BEGIN');
$gain = gain_of_pause($pooled, 'SELECT 1');
at_least($gain->{client_time}, $PAUSE,
	'transaction pooling, in a transaction: the pause is client time');
is($gain->{idle_time}, 0,
	'transaction pooling, in a transaction: no idle time');
$gain = gain_of_pause($pooled, 'COMMIT');
at_least($gain->{client_time}, $PAUSE,
	'transaction pooling, before COMMIT: the pause is client time');
$gain = gain_of_pause($pooled, "SET application_name = 'shop - 10.0.0.1:1'");
at_least($gain->{idle_time}, $PAUSE,
	'transaction pooling, after COMMIT: the pause is idle time');
is($gain->{pooler_requests},
	1, "transaction pooling: SET is the pooler's own exchange");

# a reader in the middle of such a wait has shown nothing that is taken back
$observer->settled($pooled);
pause(5);
cmp_ok($observer->account($pooled->pid)->{pending_time},
	'==', 0, 'transaction pooling: no wait of the pool is pending');

# the extended protocol
$pooled->put(extended('SELECT 1'), sync());
$pooled->responses;
my $before = $observer->settled($pooled);
pause($PAUSE);
$pooled->put(extended('SELECT 1'), sync());
$pooled->responses;
$gain = delta($before, $observer->settled($pooled));
at_least($gain->{idle_time}, $PAUSE,
	'transaction pooling, extended protocol: the pause is idle time');

# checks of the connection, by their text
$before = $observer->settled($pooled);
$pooled->run('select 1', '', 'SELECT 1', 'select 1;');
is(delta($before, $observer->settled($pooled))->{pooler_requests},
	2, "a check query outside a transaction is the pooler's");

# or by another one, as we are told; of a long one core keeps the beginning
foreach my $check ('select 2 /* check */', 'select 2 /*' . '*' x 2000 . '/')
{
	my $about = length $check > 1000 ? 'a long check query' : 'another check';

	$pooled->run("SET pgnetlat.pooler_check_query = '$check'");
	$before = $observer->settled($pooled);
	$pooled->run($check, $check);
	is(delta($before, $observer->settled($pooled))->{pooler_requests},
		2, "$about: the configured query is the pooler's");
	$before = $observer->settled($pooled);
	$pooled->run('select 1', '', 'select 2', substr($check, 0, 11) . ' */',
		" $check");
	is(delta($before, $observer->settled($pooled))->{pooler_requests},
		0, "$about: no other query is the pooler's");
}
$pooled->run('RESET pgnetlat.pooler_check_query');
$before = $observer->settled($pooled);
$pooled->run('select 1', 'select 2 /* check */');
is(delta($before, $observer->settled($pooled))->{pooler_requests},
	1, "after RESET the default check query is the pooler's");

$pooled->run('BEGIN');
$before = $observer->settled($pooled);
$pooled->run('select 1', "SET application_name = 'shop - 10.0.0.3:1'");
is(delta($before, $observer->settled($pooled))->{pooler_requests},
	0, "in a transaction no query is the pooler's");
$pooled->run('ROLLBACK');

# whoever knows better may say so
$pooled->run('SET pgnetlat.pooler_mode = session', 'SELECT 1');
$gain = gain_of_pause($pooled, 'SELECT 1');
at_least($gain->{client_time}, $PAUSE,
	'pooler_mode = session: the pause is client time');
$pooled->finish;
my $direct = PgNetlat::Client->connect($node, application_name => 'direct');
$gain = gain_of_pause($direct, 'SET pgnetlat.pooler_mode = transaction');
at_least($gain->{client_time}, $PAUSE,
	'without a pooler: the pause is client time');
$direct->run('SELECT 1');
$gain = gain_of_pause($direct, 'SELECT 1');
at_least($gain->{idle_time}, $PAUSE,
	'pooler_mode = transaction: the pause is idle time');
is($gain->{pooler_requests},
	0, "pooler_mode = transaction: no exchange is the pooler's own");
$direct->finish;

# ---------------------------------------------------------------------------
# Session pooling
# ---------------------------------------------------------------------------

$pooled = PgNetlat::Client->connect($node, application_name => '');
foreach my $port (1 .. 3)
{
	$before = $observer->settled($pooled);
	$pooled->run("SET application_name = 'desk - 10.0.0.1:$port'",
		'SELECT 1');
	$gain = gain_of_pause($pooled, 'SELECT 1');
	at_least($gain->{client_time}, $PAUSE,
		'session pooling: the pause is client time');
	is($gain->{idle_time}, 0, 'session pooling: there is no idle time');
	$pooled->run('DISCARD ALL');
	$gain = gain_of_pause($pooled, 'select 1');
	at_least($gain->{idle_time}, $PAUSE,
		'session pooling, cleaned up: the pause is idle time');
	is($gain->{pooler_requests},
		1, "session pooling, cleaned up: the check is the pooler's");
	is(delta($before, $observer->settled($pooled))->{pooler_requests},
		3, "session pooling: name, cleanup and check are the pooler's");
}

# a client that cleans up on its own goes on
$pooled->run("SET application_name = 'desk - 10.0.0.1:9'",
	'DISCARD ALL', 'SELECT 2');
$gain = gain_of_pause($pooled, 'SELECT 2');
at_least($gain->{client_time}, $PAUSE,
	'session pooling, DISCARD ALL of a client: the pause is client time');
$pooled->finish;

# ---------------------------------------------------------------------------
# How far away is the client?
# ---------------------------------------------------------------------------

# This process plays the pooler: a TCP connection to it from a client at this address.
sub pooler_connection
{
	my ($address) = @_;

	socket(my $listener, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
	bind($listener, pack_sockaddr_in(0, inet_aton('127.0.0.1')))
	  or die "bind: $!\n";
	listen($listener, 1)                        or die "listen: $!\n";
	socket(my $client, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
	bind($client, pack_sockaddr_in(0, inet_aton($address // '127.0.0.1')))
	  or die "bind: $!\n";
	CORE::connect($client, getsockname($listener)) or die "connect: $!\n";
	accept(my $accepted, $listener)                or die "accept: $!\n";
	my ($port) = unpack_sockaddr_in(getsockname($client));
	return ($port, $client, $accepted, $listener);
}

my ($port, @sockets) = pooler_connection();

# Names that name something else: nothing is known, and nothing breaks.
SKIP:
{
	skip 'this kernel does not report it', 5 unless $on_linux;
	my $other = PgNetlat::Client->connect(
		$node,
		tcp => 1,
		application_name => 'the server\'s own client');
	my ($its_port) = unpack_sockaddr_in(getsockname($other->{socket}));
	my @wrong = (
		"liar - 10.1.2.3:1000",
		"liar - 127.0.0.1:$its_port",
		"liar - unix:6432",
		"liar - 10.1.2.3:1 - 127.0.0.1:$port",
		"liar - 127.0.0.1:$port - 10.1.2.3:1");

	foreach my $name (@wrong)
	{
		my $liar =
		  PgNetlat::Client->connect($node, application_name => $name);

		# the sampler has had time to look
		my $ticks =
		  $observer->value('SELECT sampler_ticks FROM pgnetlat_info');
		$observer->poll(
			sub {
				$liar->run('SELECT 1');
				return $observer->value(
					'SELECT sampler_ticks FROM pgnetlat_info') > $ticks + 5;
			});
		is($observer->account($liar->pid)->{client_rtt},
			undef, "no client_rtt is known for $name");
		$liar->finish;
	}
	$other->finish;
}

foreach my $tcp (0, 1)
{
	my $how = $tcp ? 'TCP' : 'its socket';

	# of the whole path
	my $rtt_of = sub { $_[0]->{client_rtt} + ($_[0]->{rtt} // 0) };

	$pooled = PgNetlat::Client->connect(
		$node,
		tcp => $tcp,
		application_name => "far - 127.0.0.1:$port");
	$account = $observer->poll(
		sub {
			$pooled->run('SELECT 1');
			my $now = $observer->account($pooled->pid);
			return $now if $now->{client_rtt} || !$on_linux;
		});
  SKIP:
	{
		skip 'this kernel does not report it', 3 unless $on_linux;
		cmp_ok($account->{client_rtt},
			'>', 0, "a pooler over $how: client_rtt is known");

		# until the session has heard of it as well
		$pooled->run('BEGIN');
		ok( $observer->poll(
				sub {
					my $one = gain_of_pause($pooled, 'SELECT 1');
					my $now = $observer->account($pooled->pid);

					return abs($one->{network_time} - $rtt_of->($now)) < 1e-6;
				}),
			"a pooler over $how: network_time is of the whole path");

		# a backend that gets no processor may see a wait shorter than its path
		my @seen;
		ok( $observer->poll(
				sub {
					$before = $observer->settled($pooled);
					for (1 .. 10)
					{
						pause(2);
						$pooled->run('SELECT 1');
					}
					$account = $observer->settled($pooled);
					$gain = delta($before, $account);

					# the kernel's minimum may have become less meanwhile
					@seen = (
						$gain->{network_time},
						map { 10 * $rtt_of->($_) } $before, $account);
					return $seen[0] >= $seen[2] - 1e-5
					  && $seen[0] <= $seen[1] + 1e-5;
				}),
			"a pooler over $how: the round trip counts once for each turn"
		) or diag("$seen[0], not $seen[2] to $seen[1]");
	}
	$pooled->finish;
}

# Another role that claims to have the same client does not see the round trip
# measured for the first one, which keeps it.
SKIP:
{
	skip 'this kernel does not report it', 3 unless $on_linux;
	my @liars = map {
		PgNetlat::Client->connect(
			$node,
			user => 'stranger',
			application_name => "liar - 127.0.0.1:$_")
	} 1 .. 3;
	my $honest = PgNetlat::Client->connect($node,
		application_name => "far - 127.0.0.1:$port");

	# after 20 rounds, each session has asked several times
	my $rounds = 0;
	ok( $observer->poll(
			sub {
				$_->run('SELECT 1') foreach @liars, $honest;
				return ++$rounds >= 20
				  && $observer->account($honest->pid)->{client_rtt};
			}),
		"the client's own role has client_rtt");
	is( $observer->value(
			q{SELECT count(client_rtt) FROM pgnetlat_sessions
			  WHERE application_name = 'liar'}),
		0,
		'another role with the same client has no client_rtt');
	my ($next_port, @next_sockets) = pooler_connection();
	$honest->run("SET application_name = 'far - 127.0.0.1:$next_port'");
	cmp_ok($observer->account($honest->pid)->{client_rtt} // 0,
		'>', 0,
		"the client's own role has client_rtt for its next connection");
	$_->finish foreach @liars, $honest;
}

# Sessions that keep announcing new clients do not crowd out another one's question.
SKIP:
{
	skip 'this kernel does not report it', 1 unless $on_linux;
	my $script = PostgreSQL::Test::Utils::tempdir . '/renames';
	append_to_file($script, <<'EOC');
\set digits random(1000, 9999)
SET application_name = 'liar - 10.1.2.3:1:digits';
EOC
	my $renames = IPC::Run::start(
		[
			qw(pgbench -n -c 8 -T 180 -U stranger -h),
			$node->host, '-p', $node->port, '-f', $script, 'postgres'
		],
		'>',
		\my $out,
		'2>',
		\my $err);
	$observer->poll(
		sub {
			$observer->value(
				q{SELECT sum(requests) FROM pgnetlat_clients
				   WHERE application_name = 'liar'}) > 1000;
		}) or die "$out$err\n";
	my $requests = 0;
	foreach my $address (map { "127.0.0.$_" } 11 .. 20)
	{
		my ($its_port, @its_sockets) = pooler_connection($address);
		my $honest = PgNetlat::Client->connect($node,
			application_name => "far - $address:$its_port");

		$observer->poll(
			sub {
				$requests++;
				$honest->run('SELECT 1');
				return $observer->account($honest->pid)->{client_rtt};
			});
		$honest->finish;
	}
	cmp_ok($requests, '<', 100,
		'others claim new clients all the time: client_rtt is known soon');
	$renames->kill_kill;
}

# A client's connections take the same path: a new one's first round trips, which may be
# longer, replace no shorter one that was measured a moment ago.
SKIP:
{
	skip 'this kernel does not report it', 2 unless $on_linux;
	my $client = PgNetlat::Client->connect(
		$node,
		options => '-c pgnetlat.rtt_interval=1ms',
		application_name => "far - 127.0.0.1:$port");
	my @kept;
	my @known;

	ok( $observer->poll(
			sub {
				$client->run('SELECT 1');
				$observer->account($client->pid)->{client_rtt};
			}),
		'many connections of a client: client_rtt is known');

	foreach (1 .. 20)
	{
		my ($next_port, @next) = pooler_connection();

		push @kept, @next;
		$client->run("SET application_name = 'far - 127.0.0.1:$next_port'");
		for (1 .. 4)
		{
			pause(12);
			$client->run('SELECT 1');
		}
		push @known, $observer->account($client->pid)->{client_rtt} // 0;
	}
	is(scalar(grep { $known[$_] > $known[ $_ - 1 ] } 1 .. $#known),
		0, 'many connections of a client: client_rtt does not grow')
	  or diag("@known");
	$client->finish;
}

no_violations($observer);
$observer->finish;
$node->stop;
is( scalar(
		() = server_log($node) =~ /^.*(?:PANIC|TRAP|was terminated by).*$/mg),
	0,
	'the server has not crashed');

done_testing();
