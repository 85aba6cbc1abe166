
# Copyright (c) 2026, the pgnetlat authors

# The exporters' queries: nothing that the owner of a database puts into it runs
# as the exporter, or changes what it reads.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $monitoring = "$FindBin::RealBin/../monitoring";

plan skip_all => 'the exporters\' files are not here'
  unless -d "$monitoring/zabbix";

# The queries of all exporters' files.
my %queries;
foreach my $file (glob "$monitoring/*/*.{yml,yaml,sql}")
{
	next if $file =~ m{/(?:prometheus|grafana)/};
	my $text = slurp_file($file);
	$queries{$1} = $file while $text =~ /\b(SELECT\b[^;'"\n]*)/gi;
}
my $column = qr/\w+(?: AS tag_\w+)?/;

cmp_ok(scalar keys %queries, '>=', 20, "the exporters' files have queries");
is_deeply(
	[
		grep {
			!/^SELECT $column(?:, $column)* FROM public\.pgnetlat_metrics_\w+$/
		  }
		  sort keys %queries
	],
	[],
	'each query reads columns of a view, with its schema');

my ($node, $observer) = start_node('metrics');
$observer->run(
	'CREATE ROLE exporter LOGIN IN ROLE pg_monitor',
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE keeper LOGIN',
	'CREATE DATABASE shop OWNER keeper',
	'GRANT ALL ON SCHEMA public TO keeper',
	'CREATE DATABASE quiet');
PgNetlat::Client->connect($node, dbname => 'shop')
  ->run('CREATE EXTENSION pgnetlat', 'GRANT ALL ON SCHEMA public TO keeper');

# A client whose figures do not change any more.
my $client = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	dbname => 'quiet',
	application_name => 'gone');
$client->run('SELECT 1', 'SELECT 2');
$client->finish;
$observer->poll(
	sub {
		return (
			$observer->value(
				"SELECT ended_sessions FROM pgnetlat_clients WHERE application_name = 'gone'"
			) // 0) > 0;
	});

sub exporter
{
	return PgNetlat::Client->connect(
		$node,
		tcp => 1,
		user => $_[0] // 'exporter',
		dbname => 'shop',
		application_name => 'exporter');
}

# Rows of what is at rest.
sub at_rest
{
	my ($session) = @_;

	return [
		map  { $session->rows($_) }
		grep { /FROM public\.pgnetlat_metrics_(?:database|client|bucket)$/ }
		sort keys %queries
	];
}

sub quiet
{
	return [ grep { ($_->{datname} // $_->{tag_datname} // '') eq 'quiet' }
		  @{ $_[0] } ];
}

my $before = quiet(at_rest(exporter()));
cmp_ok(scalar @$before, '>', 3, 'a client at rest has figures');

# What the owner of the database may do: functions and operators with the names
# and argument types of PostgreSQL's own, relations named like its catalogs, and
# a search_path for everybody in which they come first.
my $keeper =
  PgNetlat::Client->connect($node, user => 'keeper', dbname => 'shop');
$keeper->run(
	<<'EOC', 'ALTER DATABASE shop SET search_path = public, pg_catalog');
DO $$
DECLARE
	types oid[] := ARRAY['int4', 'int8', 'float8', 'numeric', 'text', 'name', 'oid', 'bool', 'inet',
		'timestamptz', 'interval']::regtype[]::oid[];
	found record;
BEGIN
	FOR found IN
		SELECT DISTINCT p.proname AS name, p.proargtypes::oid[] AS arguments, p.prorettype AS result,
			   pg_get_function_identity_arguments(p.oid) AS signature
		  FROM pg_proc p
		 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a') AND NOT p.proretset
		   AND p.proargtypes::oid[] <@ types AND p.prorettype = ANY (types) AND p.provariadic = 0
		   AND p.pronargs BETWEEN 1 AND 3 AND p.proargmodes IS NULL
	LOOP
		EXECUTE format('CREATE OR REPLACE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql
						AS ''BEGIN RAISE EXCEPTION USING MESSAGE = ''''hijacked''''; END''',
					   found.name, array_to_string(ARRAY(SELECT format_type(t, NULL) FROM unnest(found.arguments) t), ', '),
					   format_type(found.result, NULL));
	END LOOP;
	FOR found IN
		SELECT DISTINCT o.oprname AS name, l::regtype AS left, r::regtype AS right,
			   CASE WHEN o.oprresult = 'bool'::regtype THEN 'bool' ELSE 'float8' END AS result
		  FROM pg_operator o, unnest(types) l, unnest(types) r
		 WHERE o.oprnamespace = 'pg_catalog'::regnamespace
		   AND o.oprname IN ('=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '||')
		   AND (o.oprleft = l AND o.oprright = r OR o.oprname = '/' AND l = 'float8'::regtype AND r = 'int4'::regtype)
		   AND o.oprresult = ANY (types)
	LOOP
		EXECUTE format('CREATE OR REPLACE FUNCTION public.trap_%s(%s, %s) RETURNS %s LANGUAGE plpgsql
						AS ''BEGIN RAISE EXCEPTION USING MESSAGE = ''''hijacked''''; END''',
					   found.result, found.left, found.right, found.result);
		EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.trap_%s, LEFTARG = %s, RIGHTARG = %s)',
					   found.name, found.result, found.left, found.right);
	END LOOP;
	FOR found IN
		SELECT c.relname AS name FROM pg_class c
		 WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname ~ '^pg_'
	LOOP
		EXECUTE format('CREATE VIEW public.%I AS SELECT public.trap_float8(1.0::float8, 1) AS trap', found.name);
		EXECUTE format('GRANT SELECT ON public.%I TO PUBLIC', found.name);
	END LOOP;
END
$$
EOC

# The traps are there, for a query that is not like these.
foreach my $query (
	'SELECT exec_seconds_total / 1 FROM public.pgnetlat_metrics_database',
	'SELECT sum(exec_seconds_total) FROM public.pgnetlat_metrics_database',
	'SELECT * FROM pg_database')
{
	like(exporter()->error_of($query),
		qr/hijacked/, "another query is hijacked: $query");
}

my $exporter = exporter();
is( $exporter->value('SHOW search_path'),
	'public, pg_catalog',
	"the exporter's search_path has the traps first");
foreach my $query (sort keys %queries)
{
	is($exporter->error_of($query),
		'', 'not hijacked: ' . $query =~ s/.* FROM/... FROM/r);
}
is_deeply(quiet(at_rest($exporter)),
	$before, 'the exporter reads the same figures as before');

# Who may read them.
my @hidden = sort grep { exporter('plain')->error_of($_) } keys %queries;
is( scalar @hidden,
	scalar(grep { !/metrics_exporter$/ } keys %queries),
	'without pg_monitor every query but one fails');
is_deeply(
	[
		exporter('plain')->rows(
			'SELECT role_sees_all FROM public.pgnetlat_metrics_exporter')
	],
	[ { role_sees_all => '0' } ],
	'without pg_monitor role_sees_all is 0');

no_violations($observer);
$node->stop;
done_testing();
