
# Copyright (c) 2026, the pgnetlat authors

# pg_upgrade, to the same major version: the definitions, a threshold that was set and the
# setting of a database go with it, and the new server counts.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($old, $observer) = start_node('old');
my $bindir = $old->config_data('--bindir');
my $new = new_node('new');

plan skip_all => 'there is no pg_upgrade' unless -x "$bindir/pg_upgrade";

$observer->run(
	q{SELECT pgnetlat_set_threshold('chatty_trips', 8)},
	'CREATE VIEW mine AS SELECT pid, requests FROM pgnetlat_sessions',
	'CREATE DATABASE counted');
$observer->run(
	q{ALTER DATABASE counted SET session_preload_libraries = 'pgnetlat'})
  if $old->pg_version >= 17;
my $objects =
  q{SELECT count(*) FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'};
my $before = $observer->value($objects);
no_violations($observer);
$observer->finish;
$old->stop;

# it writes its logs into the folder in which it runs
chdir $PostgreSQL::Test::Utils::tmp_check;
command_ok(
	[
		'pg_upgrade', '--no-sync', '--old-datadir', $old->data_dir,
		'--new-datadir', $new->data_dir, '--old-bindir', $bindir,
		'--new-bindir', $bindir, '--socketdir', $new->host,
		'--old-port', $old->port, '--new-port', $new->port
	],
	'pg_upgrade');

$new->start;
$observer = PgNetlat::Observer->connect($new);
is($observer->value($objects), $before, 'all definitions are there');
is( $observer->value(
		q{SELECT value FROM pgnetlat_thresholds WHERE name = 'chatty_trips'}),
	8,
	'a threshold that was set is kept');
my $requests = 'SELECT requests FROM mine WHERE pid = pg_backend_pid()';
my $counted = $observer->value($requests);
cmp_ok($observer->value($requests), '>', $counted, 'the new server counts');
is( $observer->value(
		q{SELECT count(*) FROM pg_db_role_setting WHERE setconfig = '{session_preload_libraries=pgnetlat}'}
	),
	$new->pg_version >= 17 ? 1 : 0,
	'the setting of a database is kept');
is(scalar($observer->findings > 0), 1, 'pgnetlat_diagnose() answers');

no_violations($observer);
$new->stop;
done_testing();
