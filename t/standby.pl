
# Copyright (c) 2026, the pgnetlat authors

# Everything works on a hot standby as on its primary.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($primary, $on_primary) =
  start_node('primary', init => { allows_streaming => 1 });
$on_primary->run('CREATE TABLE t (i int)');
my $standby = start_standby('standby', $primary);

my $observer = PgNetlat::Observer->connect($standby);
is($observer->value('SELECT pg_is_in_recovery()'),
	't', 'the server is a standby');

foreach (
	qw(pgnetlat_sessions pgnetlat_waits pgnetlat_statements pgnetlat_clients
	pgnetlat_histogram pgnetlat_history pgnetlat_top_statements pgnetlat_info)
  )
{
	is($observer->error_of("SELECT * FROM $_"),
		'', "$_ can be read on the standby");
}
ok( $observer->poll(
		sub { $observer->value('SELECT sampler_pid FROM pgnetlat_info') }),
	'the sampler runs on the standby');

my $client =
  PgNetlat::Client->connect($standby, application_name => 'reader');
$client->run(('SELECT count(*) FROM t') x 10);
my $account = $observer->settled($client);
is($account->{requests}, $client->responded,
	'requests are counted on the standby');
is($account->{transactions},
	$client->responded, 'transactions are counted on the standby');
is($observer->error_of('SELECT pgnetlat_reset()'),
	'', 'pgnetlat_reset() works on the standby');
$client->begin_anew;
$client->run('SELECT count(*) FROM t');
is($observer->settled($client)->{requests},
	1, 'requests are counted from zero after the reset');

# walsenders are no client sessions
is( $on_primary->value(
		q{SELECT count(*) FROM pgnetlat_sessions s JOIN pg_stat_activity a USING (pid)
		  WHERE a.backend_type <> 'client backend'}),
	0,
	'only client sessions are shown');

# sessions stay through a promotion
$standby->promote;
$standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
$client->run('INSERT INTO t VALUES (1)');
is($observer->settled($client)->{requests},
	$client->responded, 'sessions are counted through a promotion');

no_violations($observer);
no_violations($on_primary);
$standby->stop;
$primary->stop;
done_testing();
