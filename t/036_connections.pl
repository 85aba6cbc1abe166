
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

my ($node, $observer) =
  start_node('connections',
	conf => "password_encryption = 'scram-sha-256'\n");

$observer->run("CREATE ROLE $_ LOGIN PASSWORD '$PASSWORD'")
  foreach qw(trusted scrammed spoken rejected);
$observer->run('CREATE DATABASE other');
append_to_file(
	$node->data_dir . '/pg_hba.conf.new',
	join("\n",
		'local all all trust',
		'host all scrammed all scram-sha-256',
		'host all spoken all password',
		'host all rejected all reject',
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
my $SUMS = join ', ', map { "coalesce(sum($_), 0) AS $_" } @SUMS;

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
	$cost->{connect_time} - 480,
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
		$cost->{connect_time} - 0.96 * $paused,
		'... is not the client');
	$_->finish foreach $locker, $waiting;
}

done_testing();
