
# Copyright (c) 2026, the pgnetlat authors

# Together with pg_stat_statements: same identifiers, same calls, its texts.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('texts');
$node->start;

my $observer = PgNetlat::Observer->connect($node);
plan skip_all => 'pg_stat_statements is not installed'
  unless $observer->value(
	q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'}
  );
$observer->run('CREATE EXTENSION pgnetlat', 'CREATE ROLE plain LOGIN');

# Restarts with these libraries and lets a session run some statements.
sub restart_with
{
	my ($libraries) = @_;

	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = '$libraries'");
	$node->restart;
	$observer = PgNetlat::Observer->connect($node);
	$observer->run('SELECT pgnetlat_reset()');
	my $client =
	  PgNetlat::Client->connect($node, application_name => 'subject');
	$client->run(
		('SELECT g AS known FROM generate_series(1, 7) g') x 5,
		'SELECT 1 AS other',
		'CREATE TEMP TABLE t (i int)');
	$client->error_of('SELECT 1 / 0');
	$client->run('PREPARE p AS SELECT count(*) FROM t', ('EXECUTE p') x 3);

	# as drivers do it: prepared by name, or once for several executions
	$client->put(parse('b', 'BEGIN'), parse('c', 'COMMIT'), sync());
	$client->responses;
	for (1 .. 11)
	{
		$client->put(
			bind_('', 'b'),
			execute(''), sync(), bind_('', 'c'),
			execute(''), sync());
		$client->responses(2);
	}
	$client->put(parse('', 'DISCARD TEMP'),
		(bind_('', '') . execute('')) x 13, sync());
	$client->responses;

	# two kinds by turns: the plan of one gets the address of the other's
	for my $i (1 .. 17)
	{
		foreach ('CLOSE ALL', "PREPARE p$i AS SELECT 2")
		{
			$client->put(extended($_), sync());
			$client->responses;
		}
	}
	$client->finish;
	$observer->ended('subject');
	return;
}

# Texts of the statements that count five calls of seven rows.
sub texts
{
	my ($session) = @_;

	return join(
		'; ',
		map { $_->{query} // 'NULL' } $session->rows(
			'SELECT t.query FROM pgnetlat_top_statements(100) t
			   JOIN pgnetlat_statements s USING (queryid)
			  WHERE s.calls = 5 AND s.rows = 35'));
}

restart_with('pgnetlat');
like(
	texts($observer),
	qr/^queryid -?\d+ \(pg_stat_statements shows no text for it\)$/,
	'without pg_stat_statements the text is the identifier');

$observer->run('CREATE SCHEMA elsewhere',
	'CREATE EXTENSION pg_stat_statements SCHEMA elsewhere');
like(
	texts($observer),
	qr/^queryid -?\d+ \(pg_stat_statements shows no text for it\)$/,
	'if pg_stat_statements is not preloaded the text is the identifier');

# each in front of the other
foreach my $libraries ('pgnetlat, pg_stat_statements',
	'pg_stat_statements,pgnetlat')
{
	restart_with($libraries);
	is( texts($observer),
		'SELECT g AS known FROM generate_series($1, $2) g',
		"$libraries: the text is found");

	# but for those of which it loses count itself, see below
	my ($compared) = $observer->rows(
		'SELECT count(*) AS statements,
				count(*) FILTER (WHERE n.calls <> s.calls OR n.rows <> s.rows) AS different
		 FROM pgnetlat_statements n
		 JOIN elsewhere.pg_stat_statements s USING (userid, dbid, queryid)
		 WHERE n.calls BETWEEN 1 AND 10 AND s.calls > 0');
	cmp_ok($compared->{statements},
		'>=', 4, "$libraries: both have the same identifiers");
	is($compared->{different},
		0, "$libraries: both have the same calls and rows");

	is( $observer->value(
			'SELECT string_agg(calls::text, \' \' ORDER BY calls)
			 FROM pgnetlat_statements WHERE queryid IS NOT NULL AND calls > 10'),
		'11 11 13 17',
		"$libraries: prepared utility statements keep their identifiers");

	is( $observer->value(
			q{SELECT string_agg(DISTINCT concat_ws(' ', database, role), ', ')
			  FROM pgnetlat_top_statements WHERE calls = 5}),
		'postgres ' . $observer->value('SELECT current_user'),
		"$libraries: database and role have names");

	my $plain = PgNetlat::Client->connect($node, user => 'plain');
	$plain->run('SELECT 1 AS own');
	is( $observer->poll(
			sub {
				$plain->value(
					q{SELECT DISTINCT query FROM pgnetlat_top_statements(NULL)
					  WHERE role = 'plain' AND query LIKE '%shows no text%'}
				) ? 't' : undef;
			}),
		't',
		"$libraries: without USAGE the text is the identifier");
	is($plain->error_of('SELECT * FROM pgnetlat_top_statements'),
		'', "$libraries: pgnetlat_top_statements works without USAGE");
	$observer->run('GRANT USAGE ON SCHEMA elsewhere TO plain');
	is($plain->error_of('SELECT * FROM pgnetlat_top_statements'),
		'', "$libraries: pgnetlat_top_statements works with USAGE");
	is( $plain->value(
			q{SELECT count(*) FROM pgnetlat_top_statements WHERE query LIKE '%known%'}
		),
		0,
		"$libraries: a plain role does not see texts of others");
	foreach (
		'SELECT ON elsewhere.pg_stat_statements',
		'EXECUTE ON FUNCTION elsewhere.pg_stat_statements')
	{
		$observer->run("REVOKE $_ FROM PUBLIC");
		is($plain->error_of('SELECT * FROM pgnetlat_top_statements'),
			'', "$libraries: pgnetlat_top_statements works without $_");
		$observer->run("GRANT $_ TO PUBLIC");
	}
	$plain->finish;
	$observer->run('REVOKE USAGE ON SCHEMA elsewhere FROM plain');
	$observer->run('SELECT elsewhere.pg_stat_statements_reset()');
	like(
		texts($observer),
		qr/^queryid -?\d+ \(pg_stat_statements shows no text for it\)$/,
		"$libraries: after their reset the text is the identifier");
}

# What exporters show, of 20 statements: no constant, even where pg_stat_statements has
# kept it, as that of SELECT INTO before PostgreSQL 16.
$observer->run('SELECT pgnetlat_reset()');
my $client = PgNetlat::Client->connect($node);
$client->run(
	'BEGIN READ ONLY',
	q{SELECT 'secret' AS replaced, 4711 AS number ORDER BY 1},
	'COMMIT',
	q{SELECT 'secret' AS kept INTO TEMP kept_string},
	q{SELECT 4711 AS kept INTO TEMP kept_number},
	q{CREATE ROLE kept PASSWORD 'secret'});
$client->finish;
is( $observer->value(
		q{SELECT string_agg(query, '; ' ORDER BY query COLLATE "C") FROM pgnetlat_metrics_query
		  WHERE query ~ '^(BEGIN|COMMIT)|replaced'}),
	'BEGIN READ ONLY; COMMIT; SELECT $1 AS replaced, $2 AS number ORDER BY 1',
	'exporters show texts whose constants are replaced, or that have none');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_metrics_query WHERE query ~ 'secret|4711'}
	),
	0,
	'exporters show no text that has constants');

is($observer->value('SELECT count(*) FROM pgnetlat_top_statements(2)'),
	2, 'max_rows limits the rows');
is( $observer->value('SELECT count(*) FROM pgnetlat_top_statements(NULL)'),
	$observer->value('SELECT count(*) FROM pgnetlat_statements'),
	'max_rows NULL means all rows');
is( $observer->value(
		'SELECT count(*) FROM pgnetlat_top_statements(max_rows => 0)'),
	0,
	'max_rows 0 means no rows');
is( $observer->error_of('SELECT * FROM pgnetlat_top_statements(-1)'),
	'LIMIT must not be negative',
	'a negative max_rows is an error');

# Operators of somebody else, which fit better or come first.
$observer->run('CREATE SCHEMA hostile');
foreach (
	[ '+', 'float8', 'float8' ],
	[ '=', 'oid', 'bool' ],
	[ '=', 'bigint', 'bool' ],
	[ '=', 'name', 'bool' ],
	[ '=', 'text', 'bool' ],
	[ '<', 'float8', 'bool' ],
	[ '>', 'float8', 'bool' ],
	[ '<', 'int', 'bool' ],
	[ '=', 'int', 'bool' ])
{
	my ($operator, $type, $result) = @$_;
	my $function =
	  'hostile.f' . ($operator =~ tr/+=<>/abcd/r) . "($type, $type)";

	$observer->run(
		"CREATE FUNCTION $function RETURNS $result LANGUAGE plpgsql
		 AS 'BEGIN RAISE EXCEPTION ''somebody else''; END'",
			"CREATE OPERATOR hostile.$operator (FUNCTION = hostile.f"
		  . ($operator =~ tr/+=<>/abcd/r)
		  . ", LEFTARG = $type, RIGHTARG = $type)");
}
$observer->run('SET search_path = hostile, pg_catalog, public');
is( $observer->error_of('SELECT 1 = 1'),
	'somebody else',
	"an operator of another role hides the system's");
is($observer->error_of('SELECT * FROM pgnetlat_top_statements(5)'),
	'', 'pgnetlat_top_statements calls no operator of another role');
is($observer->error_of("SELECT * FROM pgnetlat_$_"),
	'', "pgnetlat_$_ calls no operator of another role")
  foreach qw(sessions waits statements clients histogram history info);
$observer->run('RESET search_path');

no_violations($observer);
$node->stop;
done_testing();
