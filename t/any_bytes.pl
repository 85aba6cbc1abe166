
# Copyright (c) 2026, the pgnetlat authors

# Names and texts of any bytes: of databases with other encodings, and chosen to look
# like what the extension adds.  Everything is still answered, in every database, and
# exporters get labels that are UTF-8, once each.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

my $node = new_node('bytes', conf => <<'EOC');
shared_preload_libraries = 'pg_stat_statements, pgnetlat'
EOC
$node->start;
my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat',
	'CREATE EXTENSION pg_stat_statements');

my $japanese = "\xe6\x97\xa5\xe6\x9c\xac";
my %database = (ascii => 'SQL_ASCII', utf8 => 'UTF8', latin1 => 'LATIN1');
foreach my $name (sort keys %database)
{
	$observer->run(
		"CREATE DATABASE \"$name\" TEMPLATE template0 ENCODING '$database{$name}' LC_COLLATE 'C' LC_CTYPE 'C'"
	);
}
$observer->run(
	'CREATE DATABASE "(all)"',
	'CREATE DATABASE "other"',
	'CREATE ROLE "(all)" LOGIN',
	'CREATE ROLE """(all)""" LOGIN');
my $ascii = PgNetlat::Client->connect($node, dbname => 'ascii');
$ascii->run(
	"CREATE ROLE \"r\xe9\xff\" LOGIN",

	# looks the same in UTF-8
	"CREATE ROLE \"r\xea\xfe\" LOGIN",
	"CREATE DATABASE \"d\xe9\xff\" TEMPLATE template0 ENCODING SQL_ASCII LC_COLLATE 'C' LC_CTYPE 'C'"
);

# what sessions run, and what they are called
my @clients;
foreach (
	[ 'ascii', "SELECT 1 AS \"\xe9\xff\"", "app\xe9\xff", 'client' ],
	[ 'utf8', "SELECT 2 AS \"$japanese\"", $japanese, 'client' ],
	[ "d\xe9\xff", 'SELECT 3 FROM pg_sleep(0.02)', 'plain', "r\xe9\xff" ],
	[ "d\xe9\xff", 'SELECT 3 FROM pg_sleep(0.02)', 'plain', "r\xea\xfe" ],
	[ '(all)', 'SELECT 4', '(all)', '(all)' ],
	[ '(all)', 'SELECT 4', '(all)', '"(all)"' ],
	[ 'other', 'SELECT 5', 'other', '(all)' ])
{
	my ($dbname, $sql, $application, $user) = @$_;

	my $client = PgNetlat::Client->connect(
		$node,
		dbname => $dbname,
		application_name => $application,
		$user eq 'client' ? () : (user => $user));
	$client->run($sql) foreach 1 .. 60;
	push @clients, $client;
}

foreach my $name ('postgres', sort keys %database)
{
	my $client = PgNetlat::Client->connect($node, dbname => $name);
	my @failed;

	$client->run(
		'CREATE EXTENSION IF NOT EXISTS pgnetlat',
		'CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
	foreach my $question (
		'SELECT * FROM pgnetlat_diagnose()',
		'SELECT * FROM pgnetlat_now',
		'SELECT * FROM pgnetlat_top_clients',
		'SELECT * FROM pgnetlat_top_statements',
		'SELECT length(pgnetlat_report())',
		'SELECT * FROM pgnetlat_what_if(rtt => 1)',
		'SELECT * FROM pgnetlat_guard(0, 0)',
		(   map { "SELECT * FROM $_->{name}" } $client->rows(
				q{SELECT c.oid::regclass::text AS name FROM pg_class c
				   WHERE relkind = 'v' AND relname ~ '^pgnetlat_metrics_' ORDER BY 1}
			)))
	{
		my $error = $client->error_of($question);

		push @failed, "$question: $error" if $error ne '';
	}
	is(join("\n", @failed), '', "$name: every question is answered");
	$client->finish;
}

# texts are shown where all of them can be expressed
$observer->run('SELECT pg_stat_statements_reset()');
$_->run('SELECT 3 FROM pg_sleep(0.02)') foreach @clients[ 2, 3 ];

# exporters connect to a database with UTF-8
my $utf8 = PgNetlat::Client->connect($node, dbname => 'utf8');
foreach my $view (
	$utf8->rows(
		q{SELECT c.oid, relname, string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS labels
			FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0
		   WHERE relkind = 'v' AND relname ~ '^pgnetlat_metrics_' AND col_description(c.oid, attnum) = 'label'
		   GROUP BY 1, 2 ORDER BY 2}))
{
	my @rows = $utf8->rows("SELECT $view->{labels} FROM $view->{relname}");
	my %seen;

	$seen{ join "\0", map { $_ // 'NULL' } @{$_}{ sort keys %$_ } }++
	  foreach @rows;
	is(join(', ', grep { $seen{$_} > 1 } sort keys %seen),
		'', "$view->{relname}: no labels twice");
	is(scalar(grep { !utf8::decode(my $copy = $_) } keys %seen),
		0, "$view->{relname}: labels are UTF-8");
}
my @pools = $utf8->rows(
	q{SELECT datname, usename FROM pgnetlat_metrics_pool WHERE datname = '(all)'}
);
is(scalar(@pools), 1, 'the row of all pools is not that of a database');

$_->finish foreach @clients, $utf8, $ascii;
no_violations($observer);
$node->stop;
done_testing();
