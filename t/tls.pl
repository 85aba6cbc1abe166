
# Copyright (c) 2026, the pgnetlat authors

# TLS connections: their accounts add up, and say that they are encrypted.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('tls', conf => "pgnetlat.idle_threshold = '1h'\n");

my $why = no_tls($node);
plan skip_all => $why if $why;
configure_tls($node);
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');

# psql encrypts; it pauses where the shell does.
sub over_tls
{
	my ($name, @commands) = @_;
	my $port = $node->port;

	return $node->safe_psql(
		'postgres',
		join("\n", @commands),
		connstr => "host=127.0.0.1 port=$port dbname=postgres sslmode=require"
		  . " application_name=$name");
}

is( over_tls(
		'self',
		'SELECT transport FROM pgnetlat_sessions WHERE pid = pg_backend_pid();'
	),
	'tls',
	'transport of an encrypted connection is tls');

over_tls('counted', ('SELECT 1;') x 10);
my $sum = $observer->ended('counted');
is($sum->{requests}, 10, 'requests are counted');
is($sum->{statements}, 10, 'statements are counted');

over_tls('pauses', 'SELECT 1;', '\! sleep 0.5', 'SELECT pg_sleep(0.5);');
$sum = $observer->ended('pauses');
at_least(waited($sum), 500, 'the pause of the client is a wait');
at_least($sum->{exec_time}, 500, 'the pause of the server is execution');

over_tls('large',
	q{SELECT repeat('x', 1000) FROM generate_series(1, 20000);});
$sum = $observer->ended('large');
is($sum->{requests}, 1, 'a large result is one exchange');
cmp_ok($sum->{bytes_sent}, '>', 20_000_000,
	'the bytes of a large result are counted');
cmp_ok($sum->{send_time}, '>', 0, 'encrypting and sending takes time');

# the observer stays in its place while encrypted sessions come and go
my $plain = PgNetlat::Client->connect($node, tcp => 1);
is($observer->settled($plain)->{transport},
	'tcp', 'transport of a plain connection is tcp');
$plain->finish;

no_violations($observer);
$node->stop;
done_testing();
