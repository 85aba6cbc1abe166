
# Copyright (c) 2026, the pgnetlat authors

# Accounts by statement: exact calls and rows, however statements are sent, and
# what counts as a repeat.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('statements', conf => <<'EOC');
pgnetlat.max_statements = 100
pgnetlat.idle_threshold = '1h'
EOC
$observer->run(
	'CREATE TABLE items (id int, note text)',
	q{CREATE FUNCTION looks_inside() RETURNS bigint LANGUAGE plpgsql
	  AS 'BEGIN PERFORM count(*) FROM items WHERE id < 5;
			   PERFORM pg_sleep(0); RETURN 1; END'});

# The identifier of a statement, as core computes it.
sub queryid
{
	my ($sql) = @_;
	my $session = PgNetlat::Client->connect($node,
		options => '-c pgnetlat.track_statements=off');

	$session->run($sql);
	my $id = $observer->poll(
		sub {
			$observer->value(
				'SELECT query_id FROM pg_stat_activity WHERE pid = '
				  . $session->pid);
		});
	$session->finish;
	return $id;
}

# Lets a fresh session do something and end, and returns what that added to
# pgnetlat_statements, by query identifier.
sub statements_of
{
	my ($function, %options) = @_;
	my $client = PgNetlat::Client->connect(
		$node,
		application_name => 'subject',
		%options);

	$observer->run('SELECT pgnetlat_reset()');
	$function->($client);
	$client->finish;
	$observer->ended('subject');
	return { map { ($_->{queryid} // 'NULL') => $_ }
		  $observer->rows('SELECT * FROM pgnetlat_statements') };
}

# Calls, rows and repeats of one statement.
sub counts
{
	my ($statements, $queryid) = @_;
	my $row = $statements->{$queryid} // {};

	return
	  join(' ',
		map { "$_=" . ($row->{$_} // 'NULL') } qw(calls rows repeats));
}

# ---------------------------------------------------------------------------
# Calls and rows
# ---------------------------------------------------------------------------

my $seven = 'SELECT g AS seven FROM generate_series(1, 7) g';
my $seven_id = queryid($seven);
my $found;

$found = statements_of(sub { $_[0]->run(($seven) x 5) });
like(
	counts($found, $seven_id),
	qr/^calls=5 rows=35 /,
	'simple protocol: calls and rows are exact');
cmp_ok($found->{$seven_id}{exec_time},
	'>', 0, 'simple protocol: execution time is counted');
cmp_ok($found->{$seven_id}{client_time},
	'>', 0, 'simple protocol: waits after a statement are booked on it');
cmp_ok($found->{$seven_id}{bytes_sent},
	'>', 0, 'simple protocol: bytes are counted');

$found = statements_of(
	sub {
		my ($client) = @_;
		$client->put(parse('s', $seven), sync());
		$client->responses;
		for (1 .. 5)
		{
			$client->put(bind_('', 's'), execute(''), sync());
			$client->responses;
		}
	});
like(
	counts($found, $seven_id),
	qr/^calls=5 rows=35 /,
	'prepared statement: calls and rows are exact');

# often enough that the plan is generic and cached
$found = statements_of(
	sub {
		my ($client) = @_;
		$client->run(
			'PREPARE s (int) AS SELECT g FROM generate_series(1, $1) g');
		$client->run(('EXECUTE s (3)') x 12);
	});
is(scalar(grep { $_->{calls} == 12 and $_->{rows} == 36 } values %$found),
	1, 'EXECUTE counts as the prepared statement');

$found = statements_of(
	sub {
		my ($client) = @_;
		$client->put(
			parse('s', 'SELECT g FROM generate_series(1, $1::int) g'),
			sync());
		$client->responses;
		for (1 .. 12)
		{
			$client->put(bind_('', 's', 3), execute(''), sync());
			$client->responses;
		}
	});
is(scalar(grep { $_->{calls} == 12 and $_->{rows} == 36 } values %$found),
	1, 'a cached plan with parameters: calls and rows are exact');

my $three = q{SELECT 'three' AS three, g FROM generate_series(1, 3) g};
my $three_id = queryid($three);

$found = statements_of(
	sub {
		my ($client) = @_;
		$client->put((extended($seven)) x 4, (extended($three)) x 2, sync());
		$client->responses;
	});
like(
	counts($found, $seven_id),
	qr/^calls=4 rows=28 /,
	'under one Sync: calls of the first statement are exact');
like(
	counts($found, $three_id),
	qr/^calls=2 rows=6 /,
	'under one Sync: calls of the last statement are exact');

$found = statements_of(
	sub {
		my ($client) = @_;
		$client->put(
			(extended($seven) . sync() . extended($three) . sync()) x 5);
		$client->responses(10);
	});
like(
	counts($found, $seven_id),
	qr/^calls=5 rows=35 /,
	'pipeline: calls of one statement are exact');
like(
	counts($found, $three_id),
	qr/^calls=5 rows=15 /,
	'pipeline: calls of the other statement are exact');

$found = statements_of(sub { $_[0]->run("$seven; $three; $seven") });
like(
	counts($found, $seven_id),
	qr/^calls=2 rows=14 /,
	'one message: calls of one statement are exact');
like(
	counts($found, $three_id),
	qr/^calls=1 rows=3 /,
	'one message: calls of the other statement are exact');

my $fetch = 'FETCH 3 FROM c';
$found = statements_of(
	sub {
		my ($client) = @_;
		$client->run(
			'BEGIN',
			"DECLARE c CURSOR FOR $seven",
			($fetch) x 3,
			'CLOSE c', 'COMMIT');
	});
is(scalar(grep { $_->{calls} == 3 and $_->{rows} == 7 } values %$found),
	1, 'FETCH from a cursor: calls and rows are exact');
is( counts($found, $seven_id),
	'calls=NULL rows=NULL repeats=NULL',
	'the query of a cursor is part of FETCH');

$found = statements_of(
	sub {
		my ($client) = @_;
		$client->run('BEGIN');
		$client->put(
			parse('', $seven),
			bind_('p', ''),
			execute('p', 3), sync());
		$client->responses;
		for (1 .. 2)
		{
			$client->put(execute('p', 3), sync());
			$client->responses;
		}
		$client->run('COMMIT');
	});
like(
	counts($found, $seven_id),
	qr/^calls=1 rows=7 /,
	'portal read in parts: it is one call');

my $insert = 'INSERT INTO items SELECT g FROM generate_series(1, 10) g';
my $update = 'UPDATE items SET note = 1 WHERE id <= 4';
my $delete = 'DELETE FROM items WHERE id > 5 RETURNING id';
my %id_of = map { $_ => queryid($_) } $insert, $update, $delete;
$observer->run('TRUNCATE items');
$found =
  statements_of(sub { $_[0]->run($insert, $update, $delete, $delete) });
like(
	counts($found, $id_of{$insert}),
	qr/^calls=1 rows=10 /,
	'INSERT: calls and rows are exact');
like(
	counts($found, $id_of{$update}),
	qr/^calls=1 rows=4 /,
	'UPDATE: calls and rows are exact');
like(
	counts($found, $id_of{$delete}),
	qr/^calls=2 rows=5 /,
	'DELETE: calls and rows are exact');

my $vacuum_id = queryid('VACUUM items');
my $set_id = queryid(q{SET work_mem = '1MB'});
$found = statements_of(
	sub {
		$_[0]->run('VACUUM items', q{SET work_mem = '1MB'}, 'VACUUM items');
	});
like(
	counts($found, $vacuum_id),
	qr/^calls=2 rows=0 /,
	'VACUUM: calls are exact');
like(counts($found, $set_id), qr/^calls=1 rows=0 /, 'SET: calls are exact');

my $copy_id = queryid('COPY items TO STDOUT');
$observer->run('TRUNCATE items', $insert);
$found = statements_of(
	sub {
		my ($client) = @_;
		$client->run('COPY items TO STDOUT');
		$client->put(query('COPY items (id) FROM STDIN'),
			copy_data("1\n2\n3\n"), copy_done());
		$client->responses;
	});
like(
	counts($found, $copy_id),
	qr/^calls=1 rows=10 /,
	'COPY TO STDOUT: calls and rows are exact');
is(scalar(grep { $_->{calls} == 1 and $_->{rows} == 3 } values %$found),
	1, 'COPY FROM STDIN: calls and rows are exact');

my $outer_id = queryid('SELECT looks_inside()');
$found = statements_of(sub { $_[0]->run(('SELECT looks_inside()') x 3) });
like(
	counts($found, $outer_id),
	qr/^calls=3 rows=3 /,
	'statement with others inside: calls and rows are exact');
is(scalar(grep { $_->{calls} > 0 } values %$found),
	1, 'what runs inside a statement is part of it');

$observer->run(
	'CREATE TABLE logged (id int)',
	'CREATE FUNCTION log_it() RETURNS trigger LANGUAGE plpgsql AS
	 \'BEGIN INSERT INTO logged VALUES (NEW.id); RETURN NEW; END\'',
	'CREATE TABLE triggers (id int)',
	'CREATE TRIGGER t AFTER INSERT ON triggers FOR EACH ROW
	 EXECUTE FUNCTION log_it()');
$found = statements_of(
	sub { $_[0]->run('INSERT INTO triggers SELECT generate_series(1, 6)') });
is_deeply(
	[ map { "$_->{calls} $_->{rows}" } grep { $_->{calls} } values %$found ],
	['1 6'],
	'a trigger is part of its statement');

# An error is no call, and what follows it is not lost.
$found = statements_of(
	sub {
		my ($client) = @_;
		for (1 .. 3)
		{
			$client->error_of('SELECT 1 / (id - id) FROM items');
			$client->run($seven);
		}
		$client->error_of(q{DO 'BEGIN PERFORM 1 / 0; END'});
		$client->run($seven);
	});
like(
	counts($found, $seven_id),
	qr/^calls=4 rows=28 /,
	'statements after errors: calls and rows are exact');

# ---------------------------------------------------------------------------
# Repeats
# ---------------------------------------------------------------------------

# The repeats among these statements, run one by one.
sub repeats_of
{
	my (@statements) = @_;
	my $rows = statements_of(sub { $_[0]->run(@statements) }, tcp => 1);

	return { map { $_ => $rows->{$_}{repeats} } keys %$rows };
}

$found = repeats_of('BEGIN', ($seven) x 3, 'COMMIT');
is($found->{$seven_id}, 2, 'A A A in a transaction has two repeats');

$found = repeats_of('BEGIN', ($seven, $three) x 2, 'COMMIT');
is( "$found->{$seven_id} $found->{$three_id}",
	'1 1',
	'A B A B in a transaction has one repeat of each');

$found = repeats_of('BEGIN', $seven, $three, 'COMMIT');
is( "$found->{$seven_id} $found->{$three_id}",
	'0 0',
	'A B in a transaction has no repeat');

$found = repeats_of(('BEGIN', $seven, 'COMMIT') x 3);
is($found->{$seven_id}, 0, 'A in transactions of its own has no repeat');

$found = repeats_of(('BEGIN', $seven, $three, 'COMMIT') x 3);
is( "$found->{$seven_id} $found->{$three_id}",
	'0 0',
	'A B in transactions of their own has no repeat');

$found = repeats_of('BEGIN', ($seven) x 3,
	'ROLLBACK', 'BEGIN', ($seven) x 2, 'COMMIT');
is($found->{$seven_id}, 3,
	'A A A in one and A A in another transaction has three repeats');

# a long pause in a transaction does not end it
my $rows = statements_of(
	sub {
		my ($client) = @_;
		$client->run('BEGIN', $seven);
		pause(100);
		$client->run($seven, 'COMMIT');
	},
	tcp => 1);
is($rows->{$seven_id}{repeats},
	1, 'A pause A in a transaction has one repeat');
SKIP:
{
	my $other = PgNetlat::Client->connect($node, tcp => 1);
	$other->run('SELECT 1');
	skip 'this kernel reports no round trip', 2
	  unless defined $observer->settled($other)->{rtt};
	$rows =
	  statements_of(sub { $_[0]->run('BEGIN', ($seven) x 20, 'COMMIT') },
		tcp => 1);
	cmp_ok($rows->{$seven_id}{repeat_network_time},
		'>', 0, 'repeats cost network time over TCP');

	# each repeat costs the round trip before it, all but the first of which
	# follow this statement; that one follows BEGIN
	cmp_ok(
		$rows->{$seven_id}{repeat_network_time},
		'<=',
		$rows->{$seven_id}{network_time} + 1e-6,
		'repeats cost no more network time than there was');
}
$rows = statements_of(sub { $_[0]->run('BEGIN', ($seven) x 20, 'COMMIT') });
is($rows->{$seven_id}{repeat_network_time},
	0, 'repeats cost no network time on a Unix socket');

# ---------------------------------------------------------------------------
# The whole of a session is in its statements
# ---------------------------------------------------------------------------

# All but the wait before the first of them, which lasts less than this:
my $first_wait = now();
$found = statements_of(
	sub {
		my ($client) = @_;
		$client->run($seven);
		$first_wait = now() - $first_wait;
		$client->run("$seven; $three", 'BEGIN', $seven);
		$client->error_of('SELECT 1/0');
		$client->run('ROLLBACK', 'CREATE TEMP TABLE t (i int)');
		$client->put(query('COPY t FROM STDIN'));
		$client->until('G');
		pause(100);
		$client->put(copy_data("1\n"), copy_done());
		$client->responses;
		$client->put(parse('', $seven), describe('S', ''), flush());
		$client->until('T');
		pause(20);
		$client->put((bind_('', '') . execute('')) x 3, sync());
		$client->responses;
		$client->put((extended($three) . sync()) x 5);
		$client->responses(5);
		$client->put(
			function_call($observer->oid('pg_sleep(float8)'), '0.05'),
			query(''), sync());
		$client->responses(3);
		$client->run(
			q{SELECT repeat('x', 1000) FROM generate_series(1, 5000)});
	},
	tcp => 1);
my $whole = $observer->client('subject');
my %sum;
foreach my $row (values %$found)
{
	$sum{$_} += $row->{$_}
	  foreach qw(calls bytes_sent exec_time send_time recv_time network_time
	  client_time in_xact_wait_time);
}
is($sum{calls}, $whole->{statements},
	'calls add up to the session\'s statements');
is($sum{bytes_sent}, $whole->{bytes_sent}, 'bytes add up to the session\'s');
cmp_ok(abs($sum{$_} - $whole->{$_}), '<', 1e-3, "$_ sums to the session's")
  foreach qw(exec_time send_time recv_time in_xact_wait_time);
foreach (qw(network_time client_time))
{
	cmp_ok(
		$sum{$_}, '<=',
		$whole->{$_} + 1e-3,
		"$_ sums to no more than the session's");
	cmp_ok(
		$sum{$_}, '>=',
		$whole->{$_} - $first_wait,
		"$_ sums to all but the first wait");
}

# ---------------------------------------------------------------------------
# Roles
# ---------------------------------------------------------------------------

# Nothing runs at top level here: the first that shows is inside the function.
$observer->run(
	'CREATE ROLE caller LOGIN',
	q{CREATE FUNCTION as_definer() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
	  'BEGIN PERFORM count(*) FROM items; RETURN 1; END'});
my $function = $observer->oid('as_definer()');
statements_of(
	sub {
		my ($client) = @_;
		for (1 .. 9)
		{
			$client->put(function_call($function));
			$client->responses;
		}
	},
	user => 'caller');
is( $observer->value(
		q{SELECT string_agg(DISTINCT userid::regrole::text, ',')
		  FROM pgnetlat_statements WHERE calls BETWEEN 1 AND 9}),
	'caller',
	'a call of a SECURITY DEFINER function is its caller\'s');

# ---------------------------------------------------------------------------
# Windows
# ---------------------------------------------------------------------------

# a window that is older than all that was counted has all of it
my $windowed = "SELECT id FROM items WHERE id = 1";
statements_of(sub { $_[0]->run($windowed) foreach 1 .. 3 });
my ($window) = $observer->rows(
	"SELECT w.calls, w.rows, w.window_time > 0 AS some_time,
			w.exec_time = s.exec_time AND w.bytes_sent = s.bytes_sent AS same
	 FROM pgnetlat_statements_last('15 min') w
		 JOIN pgnetlat_statements s USING (userid, dbid, queryid)
	 WHERE queryid = " . queryid($windowed));
is_deeply(
	$window,
	{ calls => 3, rows => 6, some_time => 't', same => 't' },
	'a window has what was counted since the reset');

# ---------------------------------------------------------------------------
# More statements than there is room for
# ---------------------------------------------------------------------------

my $different = 350;
$rows = statements_of(
	sub {
		my ($client) = @_;
		foreach my $columns (1 .. $different)
		{
			$client->run('SELECT ' . join(', ', (1) x $columns))
			  foreach 1 .. 2;
		}
	});
my ($sums) = $observer->rows(
	'SELECT sum(calls) AS calls, sum(rows) AS rows, count(*) AS entries,
			count(*) FILTER (WHERE queryid IS NULL AND userid IS NULL AND dbid IS NULL
							 AND calls > 0) AS others
	 FROM pgnetlat_statements');
is( $sums->{calls},
	2 * $different,
	'evicted statements are in the sum of calls');
is($sums->{rows}, 2 * $different,
	'evicted statements are in the sum of rows');
cmp_ok($sums->{entries}, '<=', 101,
	'pgnetlat_statements has at most max_statements rows and one more');
is($sums->{others}, 1, 'evicted statements share a row');
my ($info) = $observer->rows('SELECT * FROM pgnetlat_info');
is($info->{statements_max}, 100, 'pgnetlat_info has the limit of statements');
cmp_ok(
	$info->{statements_evicted},
	'>=',
	$different - 100,
	'pgnetlat_info counts the evicted statements');

no_violations($observer);
$node->stop;
done_testing();
