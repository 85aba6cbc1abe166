
# Copyright (c) 2026, the pgnetlat authors

# The cost of connecting: time, round trips by authentication method, and failed
# connections.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Scram;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $PASSWORD = 'correct horse';

my ($node, $observer) = start_node('connections', conf => <<'EOC');
password_encryption = 'scram-sha-256'
pgnetlat.max_clients = 100
EOC

$observer->run("CREATE ROLE $_ LOGIN PASSWORD '$PASSWORD'")
  foreach qw(trusted scrammed spoken rejected);
$observer->run('CREATE DATABASE other');
append_to_file(
	$node->data_dir . '/pg_hba.conf.new',
	join("\n",
		'local all all trust',
		'host all scrammed all scram-sha-256',
		'host all spoken all password',
		'host all nobody all scram-sha-256',
		'host all rejected all reject',
		'host all all all trust')
	  . "\n");
rename $node->data_dir . '/pg_hba.conf.new', $node->data_dir . '/pg_hba.conf'
  or die "rename: $!\n";
$node->reload;

# ---------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------

my @SUMS = qw(connections connect_round_trips connect_time connect_tls_time
  connect_auth_time);
my $SUMS = join ', ',
  map { "coalesce(sum(${_}::numeric), 0)::float8 AS $_" } @SUMS;

# The sums of the groups that match a condition.
sub cost
{
	my ($where, $view) = @_;
	my $row = (
		$observer->rows(
			"SELECT $SUMS FROM @{[$view // q{pgnetlat_clients()}]} WHERE $where"
		))[0];

	die "more in parts than the whole\n"
	  if $row->{connect_tls_time} + $row->{connect_auth_time} >
	  $row->{connect_time};
	foreach (@SUMS) { die "$_ is $row->{$_}\n" if $row->{$_} < 0 }
	return $row;
}

# The cost of the only connection with an application_name.  It is counted a
# moment after the client has been told that the server is ready.
sub cost_of
{
	my ($name) = @_;
	my $cost;

	$observer->poll(
		sub {
			$cost = cost("application_name = '$name'");
			return $cost->{connections} > 0;
		});
	return $cost;
}

# Connects, and leaves; returns what it has cost.
sub connected
{
	my ($name, %options) = @_;
	my $client =
	  PgNetlat::Client->connect($node, application_name => $name, %options);
	my $cost = cost_of($name);

	is($cost->{connections}, 1, "$name: one connection is counted");
	cmp_ok($cost->{connect_time}, '>', 0, "$name: connect_time is not zero");
	$client->finish;
	return $cost;
}

# Answers after a pause, the same before each question.
sub scram
{
	my ($milliseconds, $password) = @_;
	my $scram = PgNetlat::Scram->new($password // $PASSWORD);

	return sub {
		my $answer = $scram->answer(@_);

		pause($milliseconds);
		return $answer;
	};
}

# Asks for encryption, which is refused.  Then the server's process exists.
sub refused_encryption
{
	my ($client) = @_;

	$client->put(pack('N N', 8, 80877103));
	return is($client->read_byte, 'N', 'the server refuses encryption');
}

# ---------------------------------------------------------------------------
# Round trips
# ---------------------------------------------------------------------------

my $cost = connected('unix');
is($cost->{connect_round_trips},
	1, 'a Unix-domain socket: one round trip is counted');
is($cost->{connect_tls_time},
	0, 'a Unix-domain socket: connect_tls_time is 0');

$cost = connected('tcp', tcp => 1, user => 'trusted');
is($cost->{connect_round_trips}, 2, 'trust: two round trips are counted');

$cost =
  connected('scram', tcp => 1, user => 'scrammed', authenticate => scram(0));
is($cost->{connect_round_trips}, 4, 'SCRAM: four round trips are counted');

$cost = connected(
	'password',
	tcp => 1,
	user => 'spoken',
	authenticate => sub { message('p', "$PASSWORD\0") });
is($cost->{connect_round_trips},
	3, 'a password: three round trips are counted');

$cost = connected(
	'refused',
	tcp => 1,
	user => 'trusted',
	before_startup => sub { refused_encryption($_[0]) });
is($cost->{connect_round_trips},
	3, 'refused encryption: three round trips are counted');

# ---------------------------------------------------------------------------
# How long it takes
# ---------------------------------------------------------------------------

$cost =
  connected('slow', tcp => 1, user => 'scrammed', authenticate => scram(250));
at_least($cost->{connect_auth_time},
	500, 'a client slow to authenticate: connect_auth_time has the pauses');
is($cost->{connect_round_trips},
	4, 'a client slow to authenticate: four round trips are counted');

$cost = connected(
	'late',
	tcp => 1,
	user => 'trusted',
	before_startup => sub {
		refused_encryption($_[0]);
		pause(400);
	});
at_least($cost->{connect_time},
	400, 'a late start-up packet: connect_time has the pause');
cmp_ok($cost->{connect_auth_time},
	'<', 400, 'a late start-up packet: connect_auth_time has no pause');

# catalogs that are locked after authentication
{
	my $locker =
	  PgNetlat::Client->connect($node, application_name => 'locker');
	my $waiting;
	my $paused;

	$locker->rows('BEGIN');
	$locker->rows(
		'LOCK TABLE pg_catalog.pg_db_role_setting IN ACCESS EXCLUSIVE MODE');
	$waiting = PgNetlat::Client->begin_connecting(
		$node,
		application_name => 'held',
		user => 'trusted',
		tcp => 1);
	$observer->poll(
		sub {
			$observer->value(
				q{SELECT 1 FROM pg_locks WHERE NOT granted
				AND relation = 'pg_catalog.pg_db_role_setting'::regclass});
		});
	$paused = pause(300);
	$locker->rows('ROLLBACK');
	$waiting->be_ready;
	$cost = cost_of('held');
	at_least($cost->{connect_time}, $paused,
		'catalog locked after authentication: connect_time has the wait');
	cmp_ok($cost->{connect_auth_time},
		'<', $paused,
		'catalog locked after authentication: no wait in connect_auth_time');
	$_->finish foreach $locker, $waiting;
}

# ---------------------------------------------------------------------------
# Where the cost is shown
# ---------------------------------------------------------------------------

my $session = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	user => 'scrammed',
	application_name => 'own',
	authenticate => scram(250));
$observer->settled($session);
my $own = $observer->account($session->pid);
$cost = cost_of('own');
is($own->{$_}, $cost->{$_}, "a session has its connection's $_")
  foreach
  qw(connect_time connect_round_trips connect_tls_time connect_auth_time);
at_least($own->{connect_auth_time},
	500, "a session's connect_auth_time has the client's pauses");
cmp_ok($own->{total_time}, '>', 0, "a session's account has time");
$session->finish;

my ($histogram) = $observer->rows(
	q{SELECT count, sum * 1000 AS sum FROM pgnetlat_histogram
	  WHERE application_name = 'own' AND metric = 'connect' AND le = '+Inf'});
is($histogram->{count}, 1, 'the connect histogram has the connection');
cmp_ok(abs($histogram->{sum} - $cost->{connect_time}),
	'<', 1e-6, "the connect histogram has the connection's time");

cmp_ok(
	cost("application_name = 'own'", q{pgnetlat_clients_last('15 min')})
	  ->{connections},
	'==', 1, 'a window of 15 min has the connection');

# with the session that asks: nobody else comes or goes
sub sums_of_history
{
	return (
		$observer->rows(
			q{SELECT sum(connections) AS connections,
				sum(connect_time) AS connect_time FROM pgnetlat_history}))[0];
}

sub history_agrees
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($all, $history);

	# whoever has just come is counted a moment later
	$observer->poll(
		sub {
			$all = cost('true');
			$history = sums_of_history();
			return $history->{connections} == $all->{connections};
		});

	is($history->{connections},
		$all->{connections}, "$name: the history has as many as the groups");
	return cmp_ok(abs($history->{connect_time} - $all->{connect_time}),
		'<', 1e-3,
		"$name: the history has as much connect_time as the groups");
}

history_agrees('connections');

# ---------------------------------------------------------------------------
# Failures
# ---------------------------------------------------------------------------

# Fails to connect, for this reason.
sub refused
{
	my ($reason, %options) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	eval { PgNetlat::Client->connect($node, tcp => 1, %options); };
	return like($@, $reason, "a connection is refused with $reason");
}

# The number of failed connections, by requested names and by address.
sub failures
{
	my ($where) = @_;

	return $observer->value(
		"SELECT coalesce(sum(failed_connections), 0)
		   FROM pgnetlat_failed_connections WHERE $where");
}

# Waits until so many more failures are in the rows that match a condition than
# were there before what "cause" does.
sub counted_as_failed
{
	my ($count, $where, $cause, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($before, $all, $connections) =
	  (failures($where), failures('true'), cost('true')->{connections});

	$cause->();
	$observer->poll(sub { failures($where) >= $before + $count });
	is(failures($where) - $before,
		$count, "$name: failed connections are counted");
	is(failures('true') - $all,
		$count, "$name: failed connections are counted in one place only");
	is(cost('true')->{connections},
		$connections, "$name: no set-up connection is counted");
	return;
}

my $WRONG = qr/password authentication failed/;
my $failed_of = sub {
	my ($role, $database) = (@_, 'postgres');

	return
	  "usename = '$role' AND client_addr = '127.0.0.1' AND datname = '$database'";
};

counted_as_failed(
	20,
	$failed_of->('scrammed'),
	sub {
		refused(
			$WRONG,
			user => 'scrammed',
			application_name => "made up $_",
			authenticate => scram(0, 'wrong')) foreach 1 .. 20;
	},
	'a wrong password');
is( $observer->value(
		q{SELECT failed_connections FROM pgnetlat_clients
		   WHERE application_name = '(failed)' AND usename = 'scrammed'
			 AND client_addr = '127.0.0.1' AND datname = 'postgres'}),
	20,
	'a wrong password: pgnetlat_clients has the failures');
is( $observer->value(
		q{SELECT first_failed < last_failed AND last_failed < clock_timestamp()
			 AND last_failed > clock_timestamp() - interval '1 min'
			FROM pgnetlat_failed_connections WHERE usename = 'scrammed'}),
	't',
	'a wrong password: first_failed and last_failed are plausible');

counted_as_failed(
	2,
	$failed_of->('rejected'),
	sub {
		refused(qr/pg_hba.conf rejects connection/, user => 'rejected')
		  foreach 1, 2;
	},
	'rejected by pg_hba.conf');

# what does not exist has a name all the same
my $rows = $observer->value('SELECT count(*) FROM pgnetlat_clients');
counted_as_failed(
	1,
	$failed_of->('nobody'),
	sub { refused($WRONG, user => 'nobody', authenticate => scram(0)); },
	'no such role');
counted_as_failed(
	1,
	$failed_of->('trusted', 'nowhere'),
	sub {
		refused(
			qr/database "nowhere" does not exist/,
			user => 'trusted',
			dbname => 'nowhere');
	},
	'no such database');
counted_as_failed(
	1,
	q{usename = 'nob??dy'},
	sub { refused(qr/does not exist/, user => "nob\xff\xfedy"); },
	'a name in another encoding');
is($observer->value('SELECT count(*) FROM pgnetlat_clients'),
	$rows, 'a name in another encoding: pgnetlat_clients has no new row');

$observer->run('ALTER ROLE trusted CONNECTION LIMIT 0');
counted_as_failed(
	1,
	$failed_of->('trusted'),
	sub { refused(qr/too many connections for role/, user => 'trusted'); },
	'no connection left for the role');
$observer->run('ALTER ROLE trusted CONNECTION LIMIT -1');

# without a word
counted_as_failed(
	1,
	$failed_of->('scrammed'),
	sub {
		my $client = PgNetlat::Client->begin_connecting(
			$node,
			tcp => 1,
			user => 'scrammed');

		$client->until('R');
		$client->vanish;
	},
	'a client that disconnects');

$observer->run(q{ALTER SYSTEM SET authentication_timeout = '5s'},
	'SELECT pg_reload_conf()');
$observer->poll(
	sub {
		return PgNetlat::Client->connect($node)
		  ->value('SHOW authentication_timeout') eq '5s';
	});
counted_as_failed(
	1,
	$failed_of->('scrammed'),
	sub {
		my $client = PgNetlat::Client->begin_connecting(
			$node,
			tcp => 1,
			user => 'scrammed');

		$client->until('R');
		is(scalar(() = $client->until_closed),
			0, 'authentication_timeout ends the connection silently');
	},
	'a client that is silent');
$observer->run('ALTER SYSTEM RESET authentication_timeout',
	'SELECT pg_reload_conf()');

# Catalogs that are locked after the server has asked for the password, as by
# VACUUM FULL, do not keep the process from exiting.
foreach my $catalog (qw(pg_database pg_authid))
{
	my $locker =
	  PgNetlat::Client->connect($node, application_name => 'locker');
	my $scram = PgNetlat::Scram->new('wrong');
	my $locked = 0;

	my $before = failures($failed_of->('scrammed'));
	refused(
		$WRONG,
		user => 'scrammed',
		authenticate => sub {
			$locker->rows(
				"BEGIN; LOCK TABLE pg_catalog.$catalog IN ACCESS EXCLUSIVE MODE"
			) unless $locked++;
			return $scram->answer(@_);
		});
	ok( $observer->poll(sub { failures($failed_of->('scrammed')) > $before }),
		"while $catalog is locked: a wrong password is counted");
	is($observer->value('SELECT count(*) FROM pg_locks WHERE NOT granted'),
		0, "while $catalog is locked: no process waits for it");
	$locker->rows('ROLLBACK');
	$locker->finish;
}

# connections that are not for a client backend are not counted
{
	my $before = cost('true');
	my $failed = failures('true');
	my $client =
	  PgNetlat::Client->connect($node, application_name => 'canceled');
	my $silent = bless { node => $node, tcp => 1 }, 'PgNetlat::Client';

	cost_of('canceled');
	$client->cancel foreach 1 .. 3;
	$silent->_open_socket;
	$silent->vanish;
	$client->finish;
	connected('afterwards', tcp => 1, user => 'trusted');
	my $after = cost('true');
	is($after->{connections} - $before->{connections},
		2, 'cancel requests do not count as connections');
	is(failures('true'), $failed, 'cancel requests do not count as failures');
}

# no matter how many names there are to be tried: those that failed most often
# and last keep their places
my $all = failures('true');
refused(qr/does not exist/, user => "away $_") foreach 1 .. 130;
ok($observer->poll(sub { failures('true') == $all + 130 }),
	'many roles: every failure is counted');
cmp_ok($observer->value('SELECT count(*) FROM pgnetlat_failed_connections'),
	'<=', 129,
	'many roles: pgnetlat_failed_connections has at most 129 rows');
cmp_ok(failures('usename IS NULL'),
	'>=', 2, 'many roles: one row counts the evicted');
is(failures(q{usename = 'away 130'}),
	1, 'many roles: the latest is not evicted');
cmp_ok(failures($failed_of->('scrammed')),
	'>', 20, 'many roles: the most frequent is not evicted');
counted_as_failed(
	1,
	$failed_of->('rejected'),
	sub { refused(qr/rejects connection/, user => 'rejected'); },
	'rejected by pg_hba.conf, in a full table');

$observer->run('CREATE ROLE plain LOGIN');
is( PgNetlat::Client->connect($node, user => 'plain')
	  ->value('SELECT count(*) FROM pgnetlat_failed_connections'),
	0,
	'a plain role sees no failed connections');

# ---------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------

# a role for which nothing is counted
$observer->expect_clock(0);
$observer->run('ALTER ROLE trusted SET pgnetlat.enabled = off');
my $uncounted = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	user => 'trusted',
	application_name => 'uncounted');
$observer->await($uncounted->pid, sub { $_->{state} eq 'disabled' });
is($observer->account($uncounted->pid)->{connect_round_trips},
	2, "a session with counting off knows its connection's round trips");
is(cost("application_name = 'uncounted'")->{connections},
	0, 'a session with counting off is not in the sums');
$uncounted->finish;

# everything is saved
$observer->ended('uncounted');
my $saved = cost("application_name <> 'observer'");
$node->restart;
$observer = PgNetlat::Observer->connect($node);
is_deeply(cost("application_name <> 'observer'"),
	$saved, 'connection figures survive a restart');
$observer->value('SELECT pgnetlat_reset()');
is(cost('true')->{connections} + failures('true'),
	0, 'pgnetlat_reset() zeroes connections and failures');
counted_as_failed(
	1,
	$failed_of->('rejected'),
	sub { refused(qr/rejects connection/, user => 'rejected'); },
	'rejected by pg_hba.conf, after a reset');

no_violations($observer);
is( server_log($node) =~ /(PANIC|terminated by signal|TRAP|WARNING:)/
	? $1
	: '',
	'',
	"the server's log has no warning or crash");
$node->stop;
done_testing();
