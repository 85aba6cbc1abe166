
# Copyright (c) 2026, the pgnetlat authors

# What setting up connections costs: round trips by method of authentication,
# time by who was waited for, and connections that fail.

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

# the questions of authentication
use constant { CLEARTEXT => 3, SASL => 10, SASL_CONTINUE => 11 };

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
		'host all +turned_away all reject',
		'host all all all trust')
	  . "\n");
rename $node->data_dir . '/pg_hba.conf.new', $node->data_dir . '/pg_hba.conf'
  or die "rename: $!\n";
$node->reload;

# ---------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------

my @SUMS = qw(connections failed_connections connect_round_trips connect_time
  connect_start_time connect_tls_time connect_auth_time connect_other_time
  connect_server_time connect_network_time connect_client_time);
my $SUMS = join ', ',
  map { "coalesce(sum(${_}::numeric), 0)::float8 AS $_" } @SUMS;

# What the groups have that match a condition; the parts must add up.
sub cost
{
	my ($where, $view) = @_;
	my $row = (
		$observer->rows(
			"SELECT $SUMS FROM @{[$view // 'pgnetlat_clients']} WHERE $where")
	)[0];
	my ($parts, $who) = (0, 0);

	$parts += $row->{"connect_${_}_time"} foreach qw(start tls auth other);
	$who   += $row->{"connect_${_}_time"} foreach qw(server network client);
	die "the parts of $row->{connect_time} are $parts and $who\n"
	  if grep { abs($_ - $row->{connect_time}) > 1e-6 } $parts, $who;
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

	is($cost->{connections}, 1, "$name: one connection");
	is($cost->{failed_connections}, 0, "$name: it has not failed");
	cmp_ok($cost->{connect_time}, '>', 0, "$name: it took time");
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

# Asks for encryption, in vain.  The server's process is there, then.
sub refused_encryption
{
	my ($client) = @_;

	$client->put(pack('N N', 8, 80877103));
	return is($client->read_byte, 'N', 'there is no encryption');
}

# ---------------------------------------------------------------------------
# Round trips
# ---------------------------------------------------------------------------

my $cost = connected('unix');
is($cost->{connect_round_trips}, 1, 'a Unix-domain socket has no handshake');
is($cost->{connect_network_time}, 0, 'and no network');

$cost = connected('tcp', tcp => 1, user => 'trusted');
is($cost->{connect_round_trips}, 2, 'trust: two round trips');
is($cost->{connect_network_time}, 0, 'neither lies in the time it took');

$cost =
  connected('scram', tcp => 1, user => 'scrammed', authenticate => scram(0));
is($cost->{connect_round_trips}, 4, 'SCRAM: four round trips');
cmp_ok($cost->{connect_network_time},
	'>', 0, 'two of them are in the time it took');

$cost = connected(
	'password',
	tcp => 1,
	user => 'spoken',
	authenticate => sub { message('p', "$PASSWORD\0") });
is($cost->{connect_round_trips}, 3, 'a password: three round trips');

$cost = connected(
	'refused',
	tcp => 1,
	user => 'trusted',
	before_startup => sub { refused_encryption($_[0]) });
is($cost->{connect_round_trips},
	3, 'asking for encryption in vain costs one more');

# ---------------------------------------------------------------------------
# Who was waited for
# ---------------------------------------------------------------------------

$cost =
  connected('slow', tcp => 1, user => 'scrammed', authenticate => scram(250));
at_least($cost->{connect_client_time},
	500, 'a client that thinks in authentication');
at_least($cost->{connect_auth_time}, 500, '... which takes as long');
cmp_ok(
	$cost->{connect_server_time} + $cost->{connect_network_time},
	'<=',
	$cost->{connect_time} - 400,
	'... is not the server or the network');
is($cost->{connect_round_trips}, 4, '... nor makes it more round trips');

# longer than the server itself waits for the answer
$cost = connected(
	'slower',
	tcp => 1,
	user => 'scrammed',
	authenticate => scram(1300));
at_least($cost->{connect_client_time}, 2600, 'a client that thinks for long');
is($cost->{connect_round_trips}, 4, '... has as many round trips');

$cost = connected(
	'late',
	tcp => 1,
	user => 'trusted',
	before_startup => sub {
		refused_encryption($_[0]);
		pause(400);
	});
at_least($cost->{connect_client_time},
	400, 'a client that is late with its start-up packet');
at_least($cost->{connect_start_time}, 400, '... delays the start');

# catalogs that are locked: it is the server that takes its time
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
	at_least($cost->{connect_server_time},
		$paused, 'a server that takes its time');
	at_least($cost->{connect_other_time}, $paused,
		'... after authentication');
	cmp_ok(
		$cost->{connect_client_time},
		'<=',
		$cost->{connect_time} - 0.8 * $paused,
		'... is not the client');
	$_->finish foreach $locker, $waiting;
}

# ---------------------------------------------------------------------------
# Where it shows
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
is($own->{$_}, $cost->{$_}, "a session has its own $_")
  foreach
  qw(connect_time connect_round_trips connect_network_time connect_client_time);
at_least($own->{connect_client_time}, 500, '... with the client in it');
cmp_ok($own->{total_time}, '>', 0, '... beside its account');
$session->finish;

my ($histogram) = $observer->rows(
	q{SELECT count, sum * 1000 AS sum FROM pgnetlat_histogram
	  WHERE application_name = 'own' AND metric = 'connect' AND le = '+Inf'});
is($histogram->{count}, 1, 'a connection is in the histogram');
cmp_ok(abs($histogram->{sum} - $cost->{connect_time}),
	'<', 1e-6, '... with its time');

cmp_ok(
	cost("application_name = 'own'", q{pgnetlat_clients_last('15 min')})
	  ->{connections},
	'==', 1, 'and in a window that is long enough');

# with the session that asks: nobody else comes or goes
sub sums_of_history
{
	return (
		$observer->rows(
			q{SELECT sum(connections) AS connections,
				sum(failed_connections) AS failed_connections,
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

	is($history->{$_}, $all->{$_}, "$name: the history has as many $_")
	  foreach qw(connections failed_connections);
	return cmp_ok(abs($history->{connect_time} - $all->{connect_time}),
		'<', 1e-3, "$name: and as much time");
}

history_agrees('connections');

# ---------------------------------------------------------------------------
# Failures
# ---------------------------------------------------------------------------

# Tries to connect in vain, for this reason.
sub refused
{
	my ($reason, %options) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	eval { PgNetlat::Client->connect($node, tcp => 1, %options); };
	return like($@, $reason, "refused: $reason");
}

# Waits until so many more failures are in the rows that match a condition than
# were there before what "cause" does; no connection is.
sub counted_as_failed
{
	my ($count, $where, $cause, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $before = cost($where);
	my $all = cost('true');
	my $after;

	$cause->();
	$observer->poll(
		sub {
			$after = cost($where);
			return $after->{failed_connections} >=
			  $before->{failed_connections} + $count;
		});
	is($after->{failed_connections} - $before->{failed_connections},
		$count, "$name: counted");
	is(cost('true')->{failed_connections} - $all->{failed_connections},
		$count, "$name: there and nowhere else");
	is($after->{$_}, $before->{$_}, "$name: nothing else: $_")
	  foreach qw(connections connect_time connect_round_trips);
	return;
}

sub groups { return $observer->value('SELECT clients FROM pgnetlat_info'); }

my $WRONG = qr/password authentication failed/;
my $failed_of = sub {
	"application_name = '(failed)' AND usename = '$_[0]' AND client_addr = '127.0.0.1' AND datname = 'postgres'";
};

counted_as_failed(
	1,
	"application_name = 'scram'",
	sub {
		refused(
			$WRONG,
			user => 'scrammed',
			application_name => 'scram',
			authenticate => scram(0, 'wrong'));
	},
	'a wrong password');

my $groups = groups();
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
	'names that are made up');
is(groups(), $groups + 1, '... have one group');

counted_as_failed(
	2,
	$failed_of->('rejected'),
	sub {
		refused(qr/pg_hba.conf rejects connection/, user => 'rejected')
		  foreach 1, 2;
	},
	'rejected');

# what does not exist has no row of its own
$groups = groups();
counted_as_failed(
	3,
	"application_name = '(evicted)' AND datname = 'postgres' AND usename IS NULL",
	sub {
		refused($WRONG, user => 'nobody', authenticate => scram(0));
		refused(qr/role "nobody $_" does not exist/, user => "nobody $_")
		  foreach 1, 2;
	},
	'no such role');
counted_as_failed(
	2,
	"application_name = '(evicted)' AND datid IS NULL",
	sub {
		refused(
			qr/database "nowhere $_" does not exist/,
			user => 'trusted',
			dbname => "nowhere $_") foreach 1, 2;
	},
	'no such database');
is(groups(), $groups, '... and makes no group');

$observer->run('ALTER ROLE trusted CONNECTION LIMIT 0');
counted_as_failed(
	1,
	"application_name = 'tcp'",
	sub {
		refused(
			qr/too many connections for role/,
			user => 'trusted',
			application_name => 'tcp');
	},
	'no connection left');
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
	'a client that hangs up');

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
			0, 'the server loses its patience, without a word');
	},
	'a client that is silent');
$observer->run('ALTER SYSTEM RESET authentication_timeout',
	'SELECT pg_reload_conf()');

# who is no client of a database is not counted at all
{
	my $before = cost('true');
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
		2, 'cancel requests are no connections');
	is( $after->{failed_connections},
		$before->{failed_connections},
		'... and nobody who says nothing has failed');
}

history_agrees('failures');

# no matter how many roles there are to be tried
$observer->run('CREATE ROLE turned_away');
$observer->run("CREATE ROLE away_$_ LOGIN IN ROLE turned_away")
  foreach 1 .. 20;
my $rows = "application_name = '(failed)'";
my $rows_before =
  $observer->value("SELECT count(*) FROM pgnetlat_clients WHERE $rows");
counted_as_failed(
	20,
	"$rows OR application_name = '(evicted)' AND datname = 'postgres'",
	sub {
		refused(qr/rejects connection/, user => "away_$_") foreach 1 .. 20;
	},
	'many roles');
is($observer->value("SELECT count(*) FROM pgnetlat_clients WHERE $rows"),
	12, 'an eighth of the groups is for failures');
cmp_ok($rows_before, '<', 12, '... which was not reached before');
is($observer->value('SELECT clients_evicted FROM pgnetlat_info'),
	0, '... and nothing was evicted');

# ---------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------

# a role for which nothing is counted
$observer->run('ALTER ROLE trusted SET pgnetlat.enabled = off');
my $uncounted = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	user => 'trusted',
	application_name => 'uncounted');
$observer->await($uncounted->pid, sub { $_->{state} eq 'disabled' });
is($observer->account($uncounted->pid)->{connect_round_trips},
	2, 'a session that is not counted knows what its connection cost');
is(cost("application_name = 'uncounted'")->{connections},
	0, '... which is not counted');
$uncounted->finish;

# everything is saved
$observer->ended('uncounted');
my $saved = cost("application_name <> 'observer'");
$node->restart;
$observer = PgNetlat::Observer->connect($node);
is_deeply(cost("application_name <> 'observer'"),
	$saved, 'a restart keeps everything');
$observer->value('SELECT pgnetlat_reset()');
is(cost('true')->{connections} + cost('true')->{failed_connections},
	0, 'a reset forgets everything');
counted_as_failed(
	1,
	$failed_of->('rejected'),
	sub { refused(qr/rejects connection/, user => 'rejected'); },
	'after a reset');

no_violations($observer);
is( server_log($node) =~ /(PANIC|terminated by signal|TRAP|WARNING:)/
	? $1
	: '',
	'',
	'nothing went wrong in the server');
$node->stop;
done_testing();
