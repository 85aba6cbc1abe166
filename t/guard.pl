
# Copyright (c) 2026, the pgnetlat authors

# pgnetlat_guard() finds the tests that repeat statements or need too many round
# trips, by their application_name, and is never silent about what it has not
# counted.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

my $node = new_node('guard');
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat',
	'CREATE TABLE items AS SELECT i FROM generate_series(1, 20) i');

# The guard's rows by name, and what it does not know.
sub guard
{
	my ($arguments) = @_;
	my @rows = $observer->rows("SELECT * FROM pgnetlat_guard($arguments)");

	return (
		{
			map  { $_->{application_name} => $_ }
			grep { defined $_->{application_name} } @rows
		},
		join ', ',
		map { $_->{problem} } grep { !defined $_->{application_name} } @rows);
}

# The message and the list of pgnetlat_guard_check()'s error; none if it raises
# none.
sub refused
{
	my ($arguments) = @_;

	$observer->put(query("SELECT pgnetlat_guard_check($arguments)"));
	my ($error) = grep { $_->{type} eq 'E' } $observer->until('Z');
	return $error ? @{ $error->{error} }{ 'M', 'D' } : ();
}

# One test after another on one connection, as a pool hands it out.
my $client = PgNetlat::Client->named($node, 'begin');
my $of_item = sub { "SELECT i FROM items WHERE i = $_[0]" };

$client->run("SET application_name = 'test_loop'", 'SELECT i FROM items');
$client->run($of_item->($_)) foreach 1 .. 20;
$client->run("SET application_name = 'test_block'", 'BEGIN');
$client->run($of_item->($_)) foreach 1 .. 16;
$client->run('COMMIT');
$client->run("SET application_name = 'test_many'", 'BEGIN');
$client->run('SELECT ' . join(', ', ('i') x $_) . ' FROM items')
  foreach 1 .. 38;
$client->run('COMMIT');
$client->run("SET application_name = 'test_good'");
$client->run('BEGIN', $of_item->(1), 'SELECT count(*) FROM items', 'COMMIT')
  foreach 1 .. 40;
$client->run("SET application_name = 'end'");

my ($rows, $unknown) = guard(q{names => 'test%'});
is( join(' ', sort keys %$rows),
	'test_block test_loop test_many',
	'three of four tests have a row');
is($unknown, '', 'and nothing is unknown');
is($rows->{test_loop}{repeats_max},
	19, 'a loop over the rows of another statement: its repeats');
is($rows->{test_block}{repeats_max},
	15, 'a statement repeated in a transaction: its repeats');
is($rows->{test_block}{round_trips_max},
	18, 'and the round trips of the transaction, with BEGIN and COMMIT');
is( $rows->{test_block}{queryid},
	$rows->{test_loop}{queryid},
	'both name the same statement');
is($rows->{test_many}{round_trips_max},
	40, 'different statements: the round trips of the transaction');
is($rows->{test_many}{queryid}, undef, 'and no statement');
is( $rows->{test_many}{problem},
	'40 round trips of a transaction',
	'the problem is said');

my $limits = 'repeats => 19, round_trips => 40';
is_deeply(
	[ guard("$limits, names => 'test%'") ],
	[ {}, '' ],
	'at the limits, there are no rows');
is_deeply(
	[ guard(q{NULL, NULL, 'test%'}) ],
	[ {}, '' ],
	'without limits, there are none');

my ($error, $list) = refused(q{names => 'test%'});
is( $error,
	'3 applications make too many round trips',
	'the check raises an error');
like(
	$list,
	qr/^test_loop: 19 repeats of a statement in one burst: query identifier -?\d+$/m,
	'which lists the tests');
is(join(' ', refused(q{names => 'test_good'})),
	'', 'but not if there is nothing to say');
is( $observer->value(
		"SELECT pgnetlat_guard_check($limits, names => 'test%')"),
	4,
	'then it returns how many it has checked');

# A test begins anew, also in the middle of a transaction.
$client->run('BEGIN');
foreach my $half (1, 2)
{
	$client->run("SET application_name = 'half $half'");
	$client->run($of_item->($_)) foreach 1 .. 8;
}
$client->run('COMMIT', "SET application_name = 'end'");
($rows) = guard(q{repeats => 6, names => 'half%'});
is( join(' ', map { "$_: $rows->{$_}{repeats_max}" } sort keys %$rows),
	'half 1: 7 half 2: 7',
	'a test that begins in a transaction begins anew');

# Nobody has counted how a transaction began: it is not taken for a part of what was before.
my $switched = PgNetlat::Client->named($node, 'switched');
$switched->run(
	('SELECT count(*) FROM items') x 40,
	'SET pgnetlat.track_statements = off',
	'BEGIN', 'SET pgnetlat.track_statements = on',
	'SELECT 1', 'COMMIT');
is( $observer->value(
		q{SELECT round_trips || ' ' || round_trips_max FROM pgnetlat_clients WHERE application_name = 'switched'}
	),
	'45 0',
	'a transaction whose beginning was not counted has not the round trips before it'
);

# What is not known is not good.
($error, $list) = refused(q{names => 'nobody%'});
is($error, 'not everything was counted', 'names that do not exist: an error');
is( $list,
	q{no session with a name like 'nobody%' has completed a request},
	'which says so');
$observer->run('CREATE ROLE tester LOGIN', 'CREATE ROLE sleeper LOGIN');

# A role that has been counted before, with a setting that has it counted no more.
sub not_counted
{
	my ($setting, $problem) = @_;

	foreach my $at ('RESET ALL', "SET $setting")
	{
		$observer->run("ALTER ROLE sleeper $at");
		my $sleeper = PgNetlat::Client->named(
			$node,
			$at eq 'RESET ALL' ? 'counted' : 'uncounted',
			user => 'sleeper');
		$sleeper->run('BEGIN', ('SELECT 1') x 40, 'COMMIT');
		$sleeper->finish;
	}
	is(join('; ', refused(q{100, 100, 'counted'})),
		'', "$setting: it was counted before");
	($error, $list) = refused(q{100, 100, '%counted'});
	is($error, 'not everything was counted', "$setting: an error");
	is($list, $problem, 'which says so');
	$observer->run('SELECT pgnetlat_reset_clients()');
}
my $unidentified =
  'no statement of uncounted has a query identifier, so repeats are not known';
not_counted('pgnetlat.track_statements = off', $unidentified);
not_counted('compute_query_id = off', $unidentified);
not_counted('pgnetlat.enabled = off',
	'1 application is not counted: pgnetlat.enabled was off');
$client->run("SET application_name = 'test_good'",
	"SET application_name = 'end'");

my $stranger = PgNetlat::Client->named($node, 'stranger', user => 'tester');
is( $stranger->error_of(q{SELECT pgnetlat_guard_check(names => 'test\\_%')}),
	'not everything was counted',
	q{other roles' tests: an error});
is( $stranger->error_of(q{SELECT pgnetlat_guard_check(names => 'stranger')}),
	'', 'but not for its own');

# More names than there is room for: the name is lost, what is wrong is not.
$client->run("SET application_name = 'one of many'",
	join ';', map { $of_item->($_) } 1 .. 22);
foreach my $number (1 .. 120)
{
	$client->run("SET application_name = 'one of many: $number'", 'BEGIN');
	$client->run($of_item->(1)) foreach 1 .. 3;
	$client->run('COMMIT');
}
$client->run("SET application_name = 'end'");
($rows, $unknown) = guard(q{repeats => 19, names => 'one of many%'});
is( join(' ', keys %$rows),
	'(other names)',
	'a name that had to make room: what is wrong has a row');
is($rows->{'(other names)'}{repeats_max}, 21, 'with its repeats');
is( $rows->{'(other names)'}{problem},
	'21 repeats of a statement in one burst; the name had to make room for others',
	'and says so');

# A new run of the tests.
$observer->run('SELECT pgnetlat_reset_clients()');
$client->run("SET application_name = 'test_again'");
$client->run('BEGIN', $of_item->(1), $of_item->(2), 'COMMIT');
$client->run("SET application_name = 'end'");
is_deeply(
	[ guard(q{names => 'test%'}) ],
	[ {}, '' ],
	'after a reset, it begins anew');
is($observer->value("SELECT pgnetlat_guard_check(names => 'test%')"),
	1, 'and checks what was counted since');

# A table without room at all: what is wrong is in its evicted row, until a reset.
$_->finish foreach $client, $stranger;
$node->append_conf('postgresql.conf', 'pgnetlat.max_clients = 10');
$node->restart;
$observer = PgNetlat::Observer->connect($node);
$observer->run('SELECT pgnetlat_reset()',
	map { "CREATE ROLE tester$_ LOGIN" } 1 .. 40);
foreach my $number (1 .. 40)
{
	my $tester = PgNetlat::Client->named($node, "crowd $number",
		user => "tester$number");

	# the least used has to make room
	$tester->run(
		$number == 1
		? ('BEGIN', ('SELECT 1') x 15, 'COMMIT')
		: ('BEGIN', 'SELECT 1', 'COMMIT') x 20);
	$tester->finish;
}
($rows) = guard(q{names => 'crowd%'});
is(join(' ', map { $_->{repeats_max} } values %$rows),
	'14', 'more groups than the table has room for: what is wrong has a row');
ok($rows->{'(evicted)'}, 'that of evicted groups');
$observer->run('SELECT pgnetlat_reset_clients()');
($rows) = guard(q{names => 'crowd%'});
is(join(' ', keys %$rows), '', 'a reset of the groups forgets that as well');

no_violations($observer);
$node->stop;
done_testing();
