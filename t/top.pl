
# Copyright (c) 2026, the pgnetlat authors

# pgnetlat-top.psql, the live view for terminals: one refresh.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $script = "$FindBin::RealBin/../sql/pgnetlat-top.psql";
my ($node, $observer) = start_node('top');
$observer->run('CREATE SCHEMA elsewhere',
	'ALTER EXTENSION pgnetlat SET SCHEMA elsewhere');

my $holder =
  PgNetlat::Client->connect($node, application_name => 'holds a lock');
my $waiter =
  PgNetlat::Client->connect($node, application_name => 'waits for it');
$holder->run('BEGIN', 'SELECT pg_advisory_xact_lock(1)');
$waiter->put(query('SELECT pg_advisory_xact_lock(1)'));
$observer->poll(
	sub {
		return $observer->value(
			'SELECT count(*) FROM elsewhere.pgnetlat_now WHERE doing ~ \'^blocked by\''
		);
	});

# The search_path has the schema, and no other operators.
my $top = $node->safe_psql(
	'postgres',
	"\\set once 1\n\\i $script\nSHOW search_path;\nSELECT 1 AS still_aligned;",
	extra_params => [ '-A', '-t' ]);
like(
	$top,
	qr/^\e\[H\e\[2J\e\[7m *pid /,
	'a refresh begins by clearing the screen');
like(
	$top,
	qr/\e\[1;91m.*holds a lock.*blocks 1/,
	'a session that blocks others is bright');
like(
	$top,
	qr/\e\[31m.*waits for it.*\e\[41m!+.*blocked by/,
	'a session that is blocked is red, and so is that part of its bar');
like($top, qr/^ *"\$user", public$/m, 'the search path is restored');

$holder->run('COMMIT');
$waiter->until('Z');
no_violations($observer);
$node->stop;
done_testing();
