
# Copyright (c) 2026, the pgnetlat authors

# The cost of connecting: encryption, and clients that connect for each
# transaction.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $PASSWORD = 'battery staple';
my $node =
  new_node('encrypted', conf => "password_encryption = 'scram-sha-256'\n");
my $observer;

# ---------------------------------------------------------------------------
# A connection for each transaction
# ---------------------------------------------------------------------------

$node->start;
$observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');

my $SUMS = join ', ',
  map { "coalesce(sum(${_}::numeric), 0)::float8 AS $_" }
  qw(connections connect_round_trips connect_time connect_tls_time
  connect_auth_time ended_sessions
  exec_time send_time recv_time network_time client_time);

sub cost
{
	my ($name) = @_;
	my $row = (
		$observer->rows(
			"SELECT $SUMS FROM pgnetlat_clients WHERE application_name = '$name'"
		))[0];

	die "more in parts than the whole\n"
	  if $row->{connect_tls_time} + $row->{connect_auth_time} >
	  $row->{connect_time};
	return $row;
}

# A session of this name has ended.
sub cost_of_ended
{
	my ($name) = @_;

	$observer->ended($name);
	return cost($name);
}

append_to_file($node->data_dir . '/select.sql', "SELECT 1;\n");
{
	local $ENV{PGAPPNAME} = 'reconnects';
	local $ENV{PGSSLMODE} = 'disable';
	local $ENV{PGGSSENCMODE} = 'disable';

	$node->command_ok(
		[
			'pgbench', '-n',
			'-C', '-c',
			'2', '-t',
			'40', '-h',
			'127.0.0.1', '-p',
			$node->port, '-f',
			$node->data_dir . '/select.sql', 'postgres'
		],
		'pgbench -C succeeds');
}
my $cost;
$observer->poll(
	sub {
		$cost = cost('reconnects');
		return $cost->{ended_sessions} >= 80
		  && $cost->{ended_sessions} == $cost->{connections};
	});
my $working = 0;

# without what pgbench does in between, on a busy machine
$working += $cost->{"${_}_time"} foreach qw(exec send recv network);

# and one in which pgbench looks at the server first
cmp_ok($cost->{connections}, '>=', 80,
	'pgbench -C: each transaction has a connection');
is( $cost->{connections},
	$cost->{ended_sessions},
	"pgbench -C: every connection's session has ended");
is( $cost->{connect_round_trips},
	2 * $cost->{connections},
	'pgbench -C: each connection costs two round trips');
cmp_ok($cost->{connect_time}, '>', $working,
	'pgbench -C: connecting takes longer than the work');

# ---------------------------------------------------------------------------
# Encryption
# ---------------------------------------------------------------------------

SKIP:
{
	my $why = no_tls($node);
	skip $why, 1 if $why;

	configure_tls($node);
	$observer->run("CREATE ROLE $_ LOGIN PASSWORD '$PASSWORD'")
	  foreach qw(trusted scrammed);
	append_to_file(
		$node->data_dir . '/pg_hba.conf.new',
		join("\n",
			'local all all trust',
			'host all scrammed all scram-sha-256',
			'host all all all trust')
		  . "\n");
	rename $node->data_dir . '/pg_hba.conf.new',
	  $node->data_dir . '/pg_hba.conf'
	  or die "rename: $!\n";
	$observer->finish;
	$node->restart;
	$observer = PgNetlat::Observer->connect($node);

	my $connected = sub {
		my ($name, $settings, $trips) = @_;
		my $port = $node->port;

		local $ENV{PGPASSWORD} = $PASSWORD;
		is( $node->safe_psql(
				'postgres',
				'SELECT 1',
				connstr =>
				  "host=127.0.0.1 port=$port dbname=postgres gssencmode=disable"
				  . " application_name=$name $settings"),
			'1',
			"$name: psql connects");

		my $c = cost_of_ended($name);

		is($c->{connections}, 1, "$name: one connection is counted");
		is($c->{connect_round_trips},
			$trips, "$name: $trips round trips are counted");
		return $c;
	};

	$cost = $connected->('plain', 'user=trusted sslmode=disable', 2);
	is($cost->{connect_tls_time}, 0, 'plain: connect_tls_time is 0');

	# The curves of the client's keys; it offers a key for the first one.  The
	# server's default is P-256 in all versions, and P-384 in none.
	my $offers = sub {
		my ($groups) = @_;
		my $file = $node->data_dir . '/openssl.cnf';

		unlink $file;
		append_to_file($file, <<"EOC");
openssl_conf = default_conf
[default_conf]
ssl_conf = ssl_sect
[ssl_sect]
system_default = system_default_sect
[system_default_sect]
Groups = $groups
EOC
		return $file;
	};

	local $ENV{OPENSSL_CONF} = $offers->('P-256');
	$cost = $connected->('tls', 'user=trusted sslmode=require', 4);
	cmp_ok($cost->{connect_tls_time},
		'>', 0, 'tls: connect_tls_time is not zero');

	$connected->('tls_scram', 'user=scrammed sslmode=require', 6);
	$connected->(
		'tls12_scram',
		'user=scrammed sslmode=require ssl_max_protocol_version=TLSv1.2', 7);

	# a key of another curve than the server wants: it has to ask again
  SKIP:
	{
		skip 'PostgreSQL 19 does not show the handshake', 1
		  unless $observer->value('SHOW server_version_num') < 190000;
		$offers->('P-384:P-256');
		$connected->('tls_again', 'user=scrammed sslmode=require', 7);
	}
	$offers->('P-256');

  SKIP:
	{
		skip 'direct TLS needs PostgreSQL 17', 1
		  unless $node->pg_version >= 17;
		$connected->(
			'direct', 'user=scrammed sslmode=require sslnegotiation=direct', 5
		);
	}

	$node->append_conf('postgresql.conf', "ssl = off\n");
	$node->reload;
	$observer->poll(
		sub {
			return PgNetlat::Client->connect($node)->value('SHOW ssl') eq
			  'off';
		});
	$connected->('prefers', 'user=trusted sslmode=prefer', 3);
}

no_violations($observer);
$node->stop;
done_testing();
