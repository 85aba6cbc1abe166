
# Copyright (c) 2026, the pgnetlat authors

# No figures make a question fail: everything in SQL is asked over figures that are
# random, extreme, zero, missing or contradict each other.  The functions in C are
# replaced by functions that read tables; what calls them, by OID, notices nothing.
#
# PGNETLAT_REPEAT is the number of rounds, PGNETLAT_SEED that of the first one.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

my $rounds = $ENV{PGNETLAT_REPEAT} // 30;
my $first = $ENV{PGNETLAT_SEED} // 1;

my $node = new_node('figures');
$node->start;
my $observer = PgNetlat::Client->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE SCHEMA fake',
	'SET jit = off', <<'EOC');
CREATE FUNCTION fake.one_of(anyarray) RETURNS anyelement LANGUAGE sql VOLATILE
AS 'SELECT $1[1 + floor(random() * cardinality($1))::integer]';

-- Milliseconds and the like; 1e13 is three centuries.
CREATE FUNCTION fake.float8(name text) RETURNS float8 LANGUAGE sql VOLATILE
RETURN CASE floor(random() * 8) WHEN 0 THEN NULL WHEN 1 THEN 0 ELSE CASE WHEN name ~ '_share$' THEN random()
	ELSE CASE floor(random() * 6) WHEN 0 THEN 1e-6 WHEN 1 THEN 1e13 ELSE 10 ^ (random() * 9 - 3) END END END;

CREATE FUNCTION fake.int8(name text) RETURNS bigint LANGUAGE sql VOLATILE
RETURN CASE WHEN name IN ('queryid', 'query_id') THEN fake.one_of(ARRAY[1, 2, 3, -4, NULL]::bigint[])
	ELSE CASE floor(random() * 8) WHEN 0 THEN NULL WHEN 1 THEN 0 WHEN 2 THEN 1 WHEN 3 THEN 1000000000000000
		 ELSE (10 ^ (random() * 6))::bigint END END;

CREATE FUNCTION fake.int4(name text) RETURNS integer LANGUAGE sql VOLATILE
RETURN CASE WHEN name IN ('pid', 'blocked_by') THEN fake.one_of(ARRAY[0, 1, 2, 3, pg_backend_pid(), NULL])
	ELSE fake.one_of(ARRAY[0, 1, 7, 100000, NULL]) END;

CREATE FUNCTION fake.text(name text) RETURNS text LANGUAGE sql VOLATILE
RETURN CASE
	WHEN name = 'state' THEN fake.one_of(ARRAY['executing', 'sending', 'receiving', 'waiting', 'waiting in transaction', 'idle',
										'disabled', NULL])
	WHEN name = 'metric' THEN fake.one_of(ARRAY['request', 'wait', 'network', 'client', 'rtt', 'connect'])
	WHEN name = 'transport' THEN fake.one_of(ARRAY['unix', 'tcp', 'tls', NULL])
	WHEN name = 'le' THEN fake.one_of(ARRAY['0.001', '1.0', '+Inf'])
	WHEN name ~ 'sqlstate' THEN fake.one_of(ARRAY['28P01', '53300', 'XX000', NULL])
	WHEN name = 'backend_type' THEN fake.one_of(ARRAY['client backend', 'autovacuum worker', 'prepared transaction', NULL])
	ELSE fake.one_of(ARRAY['shop', 'web', '', 'pg_dump', E'\u65e5\u672c \u202e%s%L''"', repeat('x', 63), '(evicted)', NULL]) END;

CREATE FUNCTION fake.timestamptz(name text) RETURNS timestamptz LANGUAGE sql VOLATILE
RETURN fake.one_of(ARRAY[clock_timestamp(), clock_timestamp() - 7 * interval '1 s', clock_timestamp() + interval '1 h', '2000-01-01',
				   NULL]);

CREATE FUNCTION fake.oid(name text) RETURNS oid LANGUAGE sql VOLATILE
RETURN fake.one_of(ARRAY[10::oid, 5::oid, 1::oid, 0::oid, NULL]);

CREATE FUNCTION fake.inet(name text) RETURNS inet LANGUAGE sql VOLATILE
RETURN fake.one_of(ARRAY['10.0.0.7'::inet, '::1'::inet, '2001:db8:1234:5678:9abc:def0:1234:5678'::inet, NULL]);

CREATE FUNCTION fake.bool(name text) RETURNS boolean LANGUAGE sql VOLATILE
RETURN fake.one_of(ARRAY[true, false, NULL]);
EOC

# A table for each function in C that returns rows, and a function that reads it.
my @tables = $observer->rows(<<'EOC');
SELECT p.oid::regprocedure::text AS name, p.oid, pg_get_functiondef(p.oid) AS definition,
	   CASE WHEN p.proallargtypes IS NULL THEN format('SELECT * FROM %s', p.prorettype::regtype) END AS like_view,
	   (SELECT string_agg(format('%I %s', a.name, a.type::regtype), ', ' ORDER BY a.n)
		  FROM unnest(p.proargnames, p.proallargtypes, p.proargmodes) WITH ORDINALITY a(name, type, mode, n)
		 WHERE a.mode IN ('o', 't')) AS columns
  FROM pg_proc p
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'c'
 WHERE p.proretset
 ORDER BY 1
EOC
cmp_ok(scalar(@tables), '>', 15, 'there are functions to replace');
my @fill;
foreach my $table (@tables)
{
	my $name = "fake.t$table->{oid}";

	$observer->run(
		$table->{like_view}
		? "CREATE TABLE $name AS $table->{like_view} LIMIT 0"
		: "CREATE TABLE $name ($table->{columns})");
	my @columns = $observer->rows(
		"SELECT quote_ident(attname) AS ident, attname, replace(format_type(CASE typelem WHEN 0 THEN atttypid ELSE typelem END, NULL),
				'timestamp with time zone', 'timestamptz') AS type, typelem <> 0 AND typlen = -1 AS is_array
		   FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
		  WHERE attrelid = '$name'::regclass AND attnum > 0 ORDER BY attnum");
	my %function = (
		'double precision' => 'float8',
		numeric => 'float8',
		bigint => 'int8',
		integer => 'int4',
		timestamptz => 'timestamptz',
		oid => 'oid',
		inet => 'inet',
		boolean => 'bool');
	my @values;
	foreach my $column (@columns)
	{
		my $function = $function{ $column->{type} } // 'text';
		my $value =
		  "fake.$function('" . ($column->{attname} =~ s/'/''/gr) . "')";
		my $array = $column->{is_array} eq 't';

		push @values,
		  $array && $column->{attname} eq 'le' ? q{'{0.001,0.01,0.1,1,+Inf}'}
		  : $array
		  ? "ARRAY[$value, $value, $value, $value, $value]::$column->{type}\[]"
		  : "$value\::$column->{type}";
	}
	push @fill,
		"INSERT INTO $name SELECT "
	  . join(', ', @values)
	  . ' FROM generate_series(1, '
	  . (
		$table->{name} =~ /^pgnetlat_info/
		? 1
		: 'floor(random() * 12)::integer') . ')';
	my $definition = $table->{definition};
	$definition =~ s/\bLANGUAGE c\b/LANGUAGE sql/
	  or die "not in C: $definition";
	$definition =~ s/ STRICT\b//;
	$definition =~ s/^AS .*/AS 'SELECT * FROM $name'/ms
	  or die "no body: $definition";
	$observer->run($definition);
}

# Each function and view in SQL that takes no argument, and others with some.
my @questions = (
	(   map { "SELECT * FROM $_->{name}" } $observer->rows(
			q{SELECT c.oid::regclass::text AS name FROM pg_class c
				JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
			   WHERE relkind = 'v' ORDER BY 1})),
	q{SELECT * FROM pgnetlat_diagnose()},
	q{SELECT * FROM pgnetlat_diagnose('0')},
	q{SELECT * FROM pgnetlat_diagnose('15 min')},
	q{SELECT * FROM pgnetlat_now(0)},
	q{SELECT * FROM pgnetlat_now(2147483647)},
	q{SELECT * FROM pgnetlat_top_statements(NULL)},
	q{SELECT * FROM pgnetlat_top_clients('1 s', NULL)},
	q{SELECT * FROM pgnetlat_what_if(rtt => 0)},
	q{SELECT * FROM pgnetlat_what_if(rtt => 1000, batch => 100, server_speed => 0.01, sessions => 100000)},
	q{SELECT * FROM pgnetlat_what_if_session(1, rtt => 0.1)},
	q{SELECT length(pgnetlat_report())},
	q{SELECT pgnetlat_report_data('15 min')},
	q{SELECT pgnetlat_record(timestamptz '2026-01-01' + random() * interval '1000 days')}
);

foreach my $seed ($first .. $first + $rounds - 1)
{
	my @failed;

	$observer->run("SELECT setseed($seed / 1000000.0)",
		'TRUNCATE ' . join(', ', map { "fake.t$_->{oid}" } @tables));

	# the first round has no figures at all
	$observer->run(@fill) if $seed > 1;
	foreach my $question (@questions)
	{
		my $error = eval { $observer->run($question); ''; } // $@;

		push @failed, "$question: $error" if $error ne '';
	}
	is(join("\n", @failed),
		'', "figures of seed $seed: every question is answered");
}

$observer->finish;
$node->stop;
done_testing();
