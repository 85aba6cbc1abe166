
# Copyright (c) 2026, the pgnetlat authors

# Versions of the extension: every older one is served by this library, and
# becomes by ALTER EXTENSION UPDATE what a fresh installation is; what users
# have built on its views survives.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @views = map { "pgnetlat_$_" }
  qw(sessions waits statements clients histogram history top_statements info);

my $node = new_node('upgrade', init => { allows_streaming => 1 });
$node->start;
my $root = PgNetlat::Observer->connect($node);
my $current = $root->value(
	q{SELECT default_version FROM pg_available_extensions WHERE name = 'pgnetlat'}
);
my @older = map { $_->{version} } $root->rows(
	"SELECT v.version FROM pg_available_extension_versions v
	   JOIN pg_extension_update_paths('pgnetlat') p
		 ON p.source = v.version AND p.target = '$current' AND p.path IS NOT NULL
	  WHERE v.name = 'pgnetlat' AND v.version <> '$current'
	  ORDER BY v.version");
ok( scalar(grep { $_ eq '1.0' } @older),
	'there is a way from 1.0 to this version');

# A new database, and a superuser's connection to it.
sub database
{
	my ($name) = @_;

	$root->run("CREATE DATABASE $name");
	return PgNetlat::Observer->connect($node, dbname => $name);
}

# All that an extension consists of, one line for each property.
sub catalog
{
	my ($connection) = @_;

	return join "\n",
	  map { "$_->{object}: $_->{is}" } $connection->rows(<<'EOS');
WITH member AS (
	SELECT m.classid, m.objid, pg_describe_object(m.classid, m.objid, 0) AS name
	  FROM pg_depend m JOIN pg_extension e ON e.oid = m.refobjid
	 WHERE m.refclassid = 'pg_extension'::regclass
	   AND m.deptype = 'e' AND e.extname = 'pgnetlat'
), functions AS (
	SELECT m.name, p.* FROM member m JOIN pg_proc p ON p.oid = m.objid
	 WHERE m.classid = 'pg_proc'::regclass
), relations AS (
	SELECT m.name, c.* FROM member m JOIN pg_class c ON c.oid = m.objid
	 WHERE m.classid = 'pg_class'::regclass
)
SELECT name AS object, 'exists' AS is FROM member
UNION ALL
SELECT 'version', extversion FROM pg_extension WHERE extname = 'pgnetlat'
UNION ALL
SELECT name || ' definition', pg_get_functiondef(oid) FROM functions
UNION ALL
SELECT name || ' privileges', proacl::text FROM functions
UNION ALL
SELECT name || ' definition', pg_get_viewdef(oid) FROM relations
UNION ALL
SELECT name || ' properties', concat_ws(' ', relkind, relacl::text, reloptions::text)
  FROM relations
UNION ALL
SELECT format('%s column %s', name, attnum),
	   concat_ws(' ', attname, format_type(atttypid, atttypmod), attacl::text,
				 col_description(attrelid, attnum))
  FROM relations JOIN pg_attribute ON attrelid = relations.oid AND attnum > 0
UNION ALL
SELECT name || ' comment', obj_description(objid, classid::regclass::name) FROM member
UNION ALL
SELECT name || ' initial privileges', i.initprivs::text
  FROM member m JOIN pg_init_privs i
	ON (i.classoid, i.objoid) = (m.classid, m.objid) AND i.privtype = 'e'
 ORDER BY 1, 2
EOS
}

# ---------------------------------------------------------------------------
# This library with the SQL of every older version, beside its own
# ---------------------------------------------------------------------------

my $fresh = database('fresh');
$fresh->run('CREATE EXTENSION pgnetlat');
is( $fresh->value(
		q{SELECT extversion FROM pg_extension WHERE extname = 'pgnetlat'}),
	$current,
	'a fresh installation has the current version');
is($fresh->value('SELECT version FROM pgnetlat_info'),
	$current, 'and so has the library');

my $client =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'someone');
$client->run(('SELECT 1') x 7);
my $pid = $client->pid;
$root->run('CREATE EXTENSION pgnetlat');
$root->settled($client);

my %older;
foreach my $version (@older)
{
	my $database = $version =~ s/\./_/r;
	my $old = $older{$version} = database("v$database");

	$old->run("CREATE EXTENSION pgnetlat VERSION '$version'");
	is($old->error_of("SELECT * FROM $_"), '', "$version: $_ can be read")
	  foreach @views;
	is($old->value('SELECT version FROM pgnetlat_info'),
		$current, "$version: the version is the library's");
	is( $old->value(
			"SELECT requests FROM pgnetlat_sessions WHERE pid = $pid"),
		7,
		"$version: sessions are counted");
	is( $old->value("SELECT count(*) FROM pgnetlat_recent($pid)"),
		$fresh->value("SELECT count(*) FROM pgnetlat_recent($pid)"),
		"$version: exchanges are recorded");
	is( $old->value(
			"SELECT requests FROM pgnetlat_clients WHERE application_name = 'someone'"
		),
		7,
		"$version: groups are counted");
}

# what has got another name
my $v1_0 = $older{'1.0'};
my ($old_row) = $v1_0->rows(
	"SELECT exec_share, network_share, client_share FROM pgnetlat_sessions WHERE pid = $pid"
);
cmp_ok(
	abs($old_row->{exec_share} +
		  $old_row->{network_share} +
		  $old_row->{client_share} - 1),
	'<', 1e-9,
	'1.0: shares sum to 1');
ok(defined $v1_0->value("SELECT max(exec_share) FROM $_"),
	"1.0: $_ has exec_share")
  foreach qw(pgnetlat_clients pgnetlat_history);
is( $v1_0->value(
		q{SELECT string_agg(DISTINCT metric, ' ' ORDER BY metric) FROM pgnetlat_histogram}
	),
	'client exchange network rtt wait',
	'1.0: metrics as they were called');
is( $fresh->value(
		q{SELECT string_agg(DISTINCT metric, ' ' ORDER BY metric) FROM pgnetlat_histogram
		  WHERE metric IN ('exchange', 'request')}),
	'request',
	'now: as they are called');
is( $v1_0->value(
		q{SELECT count FROM pgnetlat_histogram WHERE application_name = 'someone'
		  AND metric = 'exchange' AND le = '+Inf'}),
	$fresh->value(
		q{SELECT count FROM pgnetlat_histogram WHERE application_name = 'someone'
		  AND metric = 'request' AND le = '+Inf'}),
	'the same observations');
is($v1_0->error_of('SELECT * FROM pgnetlat_top_statements("limit" => 3)'),
	'', '1.0: the parameter of pgnetlat_top_statements');

# ---------------------------------------------------------------------------
# Updated is as installed
# ---------------------------------------------------------------------------

my $expected = catalog($fresh);
foreach my $version (@older)
{
	my $old = $older{$version};

	isnt(catalog($old), $expected, "$version: there is something to update");
	is($old->error_of('ALTER EXTENSION pgnetlat UPDATE'),
		'', "$version: update");
	is(catalog($old), $expected,
		"$version: then everything is as in a fresh installation");
	is($old->error_of("SELECT * FROM $_"),
		'', "$version, updated: $_ can be read")
	  foreach @views;
}

# views can be written down and read again, as pg_upgrade does
foreach my $view (@views)
{
	$fresh->run("CREATE VIEW again AS "
		  . $fresh->value("SELECT pg_get_viewdef('$view'::regclass)"));
	is( $fresh->value("SELECT pg_get_viewdef('again'::regclass)"),
		$fresh->value("SELECT pg_get_viewdef('$view'::regclass)"),
		"$view: its definition is read as it is written");
	$fresh->run('DROP VIEW again');
}

# ---------------------------------------------------------------------------
# What users have built on 1.0
# ---------------------------------------------------------------------------

my $used = database('used');
$used->run(
	q{CREATE EXTENSION pgnetlat VERSION '1.0'},
	'CREATE ROLE somebody',
	'CREATE VIEW theirs AS SELECT pid, requests, exec_share FROM pgnetlat_sessions',
	'CREATE VIEW over_theirs AS SELECT max(exec_share) AS most FROM theirs',
	'CREATE VIEW all_of_it AS SELECT * FROM pgnetlat_clients',
	'CREATE MATERIALIZED VIEW kept AS SELECT * FROM pgnetlat_history',
	q{CREATE VIEW slow AS SELECT bucket FROM pgnetlat_histogram WHERE le = '0.1'},
	'CREATE VIEW top AS SELECT * FROM pgnetlat_top_statements',
	'CREATE FUNCTION share() RETURNS float8 BEGIN ATOMIC
		SELECT max(exec_share) FROM pgnetlat_sessions; END',
	'REVOKE SELECT ON pgnetlat_sessions FROM PUBLIC',
	'GRANT SELECT ON pgnetlat_sessions TO somebody',
	'GRANT SELECT (exec_share) ON pgnetlat_clients TO somebody',
	'GRANT EXECUTE ON FUNCTION pgnetlat_reset() TO somebody',
	'GRANT EXECUTE ON FUNCTION pgnetlat_clients() TO somebody',
	'CREATE VIEW by_function AS SELECT pid, exec_share FROM pgnetlat_sessions()'
);

# a function's columns cannot be renamed under a view
my $update = 'ALTER EXTENSION pgnetlat UPDATE';
my ($ret, $out, $err) = $node->psql('used', $update);
like(
	$err,
	qr/ERROR:  cannot update extension "pgnetlat" because other objects depend on function pgnetlat_sessions\(\)/,
	'a view over a function is in the way');
like(
	$err,
	qr/DETAIL:  The dependent objects are view by_function/,
	'which is named');
like(
	$err,
	qr/HINT:  Use the view pgnetlat_sessions in them instead/,
	'with what to do');
is($used->error_of('SELECT * FROM by_function'),
	'', 'and nothing has happened');

$used->run(
	'CREATE OR REPLACE VIEW by_function AS SELECT pid, exec_share FROM pgnetlat_sessions'
);
($ret, $out, $err) = $node->psql('used', $update);
is($ret, 0, 'over the view of the same name it is not');
like(
	$err,
	qr/WARNING:  function pgnetlat_clients\(\) has been given back its default privileges/,
	'lost privileges are told');
unlike($err, qr/pgnetlat_(sessions|reset)/, 'no others are lost');

is($used->error_of("SELECT * FROM $_"), '', "$_ has survived")
  foreach qw(theirs over_theirs all_of_it kept slow top by_function share());
is($used->error_of('REFRESH MATERIALIZED VIEW kept'),
	'', 'and can be refreshed');
is($used->value("SELECT requests FROM theirs WHERE pid = $pid"),
	7, 'with its contents');
is( $used->value(
		q{SELECT concat_ws(' ',
			has_table_privilege('public', 'pgnetlat_sessions', 'SELECT'),
			has_table_privilege('somebody', 'pgnetlat_sessions', 'SELECT'),
			has_column_privilege('somebody', 'pgnetlat_clients', 'server_share', 'SELECT'),
			has_function_privilege('somebody', 'pgnetlat_reset()', 'EXECUTE'))}),
	'f t t t',
	'so have privileges');

# ---------------------------------------------------------------------------
# Dumped and restored
# ---------------------------------------------------------------------------

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$node->command_ok([ 'pg_dump', '--file', $dump, 'used' ], 'a dump');
my $restored = database('restored');
$node->command_ok(
	[ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-f', $dump, 'restored' ],
	'and its restoration');
is(catalog($restored), catalog($used),
	'the same extension, with its privileges');
is($restored->error_of("SELECT * FROM $_"), '', "$_ has been restored")
  foreach qw(theirs over_theirs all_of_it kept slow top by_function share());

# ---------------------------------------------------------------------------
# A library that does not fit
# ---------------------------------------------------------------------------

# one of an older version would find more columns declared than it knows
foreach my $function (
	qw(pgnetlat_sessions_1_1 pgnetlat_histogram_1_1 pgnetlat_info))
{
	my $set = $function eq 'pgnetlat_info' ? '' : 'SETOF';

	$fresh->run(
		"CREATE FUNCTION newer(OUT a int, OUT b int) RETURNS $set record
			AS '\$libdir/pgnetlat', '$function' LANGUAGE C");
	($ret, $out, $err) = $node->psql('fresh', 'SELECT * FROM newer()');
	like(
		$err,
		qr/ERROR:  library and extension "pgnetlat" do not match/,
		"$function: other columns than declared");
	like(
		$err,
		qr/HINT:  Install the version of the library that matches the extension/,
		"$function: with what to do");
	$fresh->run('DROP FUNCTION newer()');
}

# updated, but not restarted
my $early = database('early');
$early->run(
	q{CREATE EXTENSION pgnetlat VERSION '1.0'},
	'CREATE FUNCTION older() RETURNS text LANGUAGE sql AS $$
		SELECT format($f$CREATE OR REPLACE FUNCTION pgnetlat_info(%s) RETURNS record
			LANGUAGE plpgsql AS $b$BEGIN version := \'1.0\'; END$b$ $f$,
			pg_get_function_arguments(\'pgnetlat_info()\'::regprocedure)) $$',
	'DO $$BEGIN EXECUTE older(); END$$');
($ret, $out, $err) = $node->psql('early', $update);
like(
	$err,
	qr/ERROR:  the server has loaded version 1\.0 of the library of extension "pgnetlat", which is too old/,
	'the library of the version before is still loaded');
like(
	$err,
	qr/HINT:  Install version 1\.1 of the library, restart the server/,
	'with what to do');

# not loaded at all: a dump can be restored, and nothing else
$root->finish;
$_->finish foreach $fresh, $used, $restored, $early, values %older;
$client->finish;
$node->append_conf('postgresql.conf', q{shared_preload_libraries = ''});
$node->restart;
my $bare = $node->safe_psql('postgres', 'CREATE DATABASE bare');
$node->command_ok(
	[
		'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-c',
		'CREATE EXTENSION pgnetlat', 'bare'
	],
	'it can be created where the library is not loaded');

foreach my $view (@views)
{
	($ret, $out, $err) = $node->psql('bare', "SELECT * FROM $view");
	like(
		$err,
		qr/pgnetlat must be loaded via "shared_preload_libraries"/,
		"$view says that it must be");
}
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries',
	"'pgnetlat'");
$node->restart;

# ---------------------------------------------------------------------------
# A standby gets its SQL from its primary, its library from its packages
# ---------------------------------------------------------------------------

$node->safe_psql('postgres',
	q{DROP EXTENSION pgnetlat; CREATE EXTENSION pgnetlat VERSION '1.0'});
my $standby = start_standby('upgrade_standby', $node);
my $reader =
  PgNetlat::Client->connect($standby, application_name => 'reader');
is($reader->error_of("SELECT * FROM $_"), '', "standby, 1.0: $_ can be read")
  foreach @views;
is( $reader->value(
		'SELECT count(exec_share) FROM pgnetlat_sessions WHERE pid = pg_backend_pid()'
	),
	1,
	'as it was');
$node->safe_psql('postgres', $update);
$node->wait_for_catchup($standby);
is($reader->error_of("SELECT * FROM $_"),
	'', "standby, updated: $_ can be read")
  foreach @views;
is( $reader->value(
		'SELECT count(server_share) FROM pgnetlat_sessions WHERE pid = pg_backend_pid()'
	),
	1,
	'as it is now');

$standby->stop;
$node->stop;
done_testing();
