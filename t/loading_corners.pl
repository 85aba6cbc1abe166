
# Copyright (c) 2026, the pgnetlat authors

# Corners of loading by sessions: a session that takes long to end, walsenders, two
# databases, and pg_upgrade.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my %options = (
	init => { allows_streaming => 1 },
	conf => <<'EOC');
shared_preload_libraries = ''
session_preload_libraries = 'pgnetlat'
EOC
my $node = new_node('corners', %options);
plan skip_all =>
  'only a server that is started with the library has memory for it'
  if $node->pg_version < 17;
$node->start;
my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');

# How many client sessions there are, and how many of them are counted.
sub counted
{
	return $observer->value(
		q{SELECT counted_sessions || ' of ' || client_sessions FROM pgnetlat_info}
	);
}

# ---------------------------------------------------------------------------
# A session that was counted and takes long to end
# ---------------------------------------------------------------------------

# Its table is dropped after it has left its slot, since it was created before the
# library was loaded.
my $ending = PgNetlat::Client->connect(
	$node,
	application_name => 'ending',
	options => '-c session_preload_libraries=');
$ending->run('CREATE TEMP TABLE kept (i int)');
is(counted(), '1 of 2', 'a session is not counted');
is($observer->account($ending->pid), undef, '... and has no account');
is($observer->account($ending->pid),
	undef, '... also when the observer looks again');
my $schema = $ending->value('SELECT pg_my_temp_schema()::regnamespace');
$ending->run(q{LOAD 'pgnetlat'}, 'SELECT 1');
ok($observer->poll(sub { counted() eq '2 of 2' }), 'now it is counted');
my $locker = PgNetlat::Client->connect($node);
$locker->run('BEGIN', "LOCK TABLE $schema.kept IN ACCESS SHARE MODE");
$ending->finish;
my $seen =
  q{SELECT count(*) FILTER (WHERE wait_event_type = 'Lock') FROM pg_stat_activity WHERE pid = }
  . $ending->pid;
ok($observer->poll(sub { $observer->value($seen) == 1 }),
	'it ends, which takes long');
is( $observer->value(
		'SELECT count(*) FROM pgnetlat_sessions WHERE pid = ' . $ending->pid),
	0,
	'... and does not count as one that has not loaded the library');
is(counted(), '2 of 2', '... nor in pgnetlat_info');
$locker->run('COMMIT');
ok($observer->ended('ending'),
	'... and it is in its group like any session that has ended');
$locker->finish;

# ---------------------------------------------------------------------------
# Walsenders
# ---------------------------------------------------------------------------

ok($observer->poll(sub { counted() eq '1 of 1' }), 'one session is left');
my $walsender = PgNetlat::Client->connect($node, replication => 'database');
is($walsender->value('SHOW session_preload_libraries'),
	'pgnetlat', 'a walsender loads the library, too');
$walsender->run('IDENTIFY_SYSTEM', 'SELECT 1');
is(counted(), '1 of 1', '... and is no client session');
is($walsender->value('SELECT count(*) FROM pgnetlat_sessions'),
	1, '... and can read the views');
$walsender->finish;

# ---------------------------------------------------------------------------
# Two databases
# ---------------------------------------------------------------------------

$observer->run('CREATE DATABASE other');
my $other = PgNetlat::Client->connect(
	$node,
	dbname => 'other',
	application_name => 'other');
$other->run('CREATE EXTENSION pgnetlat', ('SELECT 1') x 5);
is($observer->settled($other)->{requests},
	$other->responded, 'a session of another database is in the same memory');
is( $other->value(
		q{SELECT string_agg(DISTINCT datname, ' ' ORDER BY datname) FROM pgnetlat_sessions}
	),
	'other postgres',
	'... where each database shows those of both');
is( $other->value(
		q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgnetlat sampler'}
	),
	1,
	'... and one sampler serves both');
$other->finish;

# ---------------------------------------------------------------------------
# pg_upgrade
# ---------------------------------------------------------------------------

no_violations($observer);
$observer->finish;
$node->stop;
my $new = new_node('upgraded', %options);
my $bindir = $node->config_data('--bindir');
chdir ${PostgreSQL::Test::Utils::tmp_check};
command_ok(
	[
		'pg_upgrade', '--no-sync', '--old-bindir', $bindir,
		'--new-bindir', $bindir, '--old-datadir', $node->data_dir,
		'--new-datadir', $new->data_dir, '--old-port', $node->port,
		'--new-port', $new->port, '--socketdir', $new->host
	],
	'pg_upgrade carries the extension over');
$new->start;
$observer = PgNetlat::Observer->connect($new);
ok( $observer->poll(
		sub {
			counted() eq '1 of 1'
			  && $observer->value('SELECT sampler_pid FROM pgnetlat_info');
		}),
	'sessions of the new server are counted, and sampled');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_clients WHERE application_name IN ('ending', 'other')}
	),
	0,
	'counting starts from zero');
no_violations($observer);
$observer->finish;
$new->stop;

done_testing();
