
# Copyright (c) 2026, the pgnetlat authors

# The journal's rows, and what can be asked of them.  The moments are made up, so minutes
# and days pass at once; the figures are those of real sessions.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Test;
use Test::More;

my ($node, $observer) = start_node('journal');
$observer->run(
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE monitor LOGIN IN ROLE pg_read_all_stats',
	'CREATE SCHEMA elsewhere',
	'GRANT USAGE ON SCHEMA elsewhere TO PUBLIC',
	'ALTER EXTENSION pgnetlat SET SCHEMA elsewhere',
	'SET search_path = elsewhere',
	'CREATE TABLE public.stock AS SELECT id, 1000 AS amount FROM generate_series(1, 100) id',
	'GRANT ALL ON public.stock TO PUBLIC');

# The journal's clock: minutes since a morning.
sub at
{
	return "timestamptz '2026-03-01 00:00:05 UTC' + interval '$_[0] min'";
}

sub record
{
	return $observer->value('SELECT pgnetlat_record(' . at(@_) . ')');
}

sub client
{
	my ($name, %options) = @_;

	return PgNetlat::Client->connect(
		$node,
		tcp => 1,
		user => 'plain',
		application_name => $name,
		%options);
}

# ---------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------

my $shop = client('shop');
$shop->run('BEGIN', 'SELECT amount FROM stock WHERE id = 1', 'COMMIT')
  for 1 .. 10;
$observer->settled($shop);

is(record(0), 't', 'a row is written');
is(record(0.5), 'f', 'there is at most one in a minute');
is(record(1), 't', 'the next minute has one');
is( $observer->value(
		'SELECT count(*) FILTER (WHERE report IS NOT NULL AND id = 1) + count(*) FROM pgnetlat_journal'
	),
	3,
	'the first row has a report');
is( $observer->value(
		q{SELECT c->>'transactions' = '10' AND c->>'usename' = 'plain' AND (c->>'exec_time')::float8 > 0 AND NOT c ? 'total_time'
			FROM pgnetlat_journal j, jsonb_array_elements(clients) c
		   WHERE j.id = 1 AND c->>'application_name' = 'shop'}),
	't',
	'a row has the account of a client group');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_journal j, jsonb_array_elements(statements) s
		   WHERE j.id = 1 AND s->>'calls' = '10' AND s->>'usename' = 'plain'}),
	3,
	'a row has the accounts of statements');
is( $observer->value(
		q{SELECT report ? 'findings' AND NOT report ?| '{histograms,settings}' FROM pgnetlat_journal WHERE id = 1}
	),
	't',
	'a report has neither histograms nor settings');
is($observer->value("SELECT pgnetlat_record($_)"), 'f', "no row at $_")
  foreach qw('infinity' NULL);

# somebody blocks others
my $billing = client('billing');
my @blocked = map { client('shop') } 1 .. 2;
my $update = 'UPDATE stock SET amount = amount - 1 WHERE id = 7';
$billing->run('BEGIN', $update);
$_->put(query($update)) foreach @blocked;
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pgnetlat_diagnose() WHERE verdict = 'blocks others' AND evidence LIKE '2 sessions of shop%'}
			);
		}),
	'a session blocks two others');
record($_) foreach 2 .. 4;
is( $observer->value(
		q{SELECT string_agg(concat_ws(' ', j.id, f->>'victims', f->>'holder_query'), E'\n' ORDER BY id)
			FROM pgnetlat_journal j, jsonb_array_elements(findings) f WHERE f->>'verdict' = 'blocks others'}
	),
	join("\n", map { "$_ shop\@127.0.0.1 (2) $update" } 3 .. 5),
	'a finding has its victims and the statement of the holder');
is( $observer->value(
		'SELECT report IS NOT NULL FROM pgnetlat_journal WHERE id = 4'),
	't',
	'a finding that is seen again brings a report');

# ---------------------------------------------------------------------------
# Whose it is
# ---------------------------------------------------------------------------

my ($plain, $monitor) =
  map { client('reader', user => $_) } qw(plain monitor);
is($plain->value('SELECT count(*) FROM elsewhere.pgnetlat_journal'),
	0, 'a plain role sees no rows');
like(
	$plain->error_of('SELECT elsewhere.pgnetlat_record()'),
	qr/^permission denied for function pgnetlat_record/,
	'a plain role writes no row');
like(
	$plain->error_of("SELECT * FROM elsewhere.pgnetlat_journal_$_"),
	qr/^permission denied for table/,
	"a plain role does not read pgnetlat_journal_$_") foreach 'rows', 1;
is($monitor->value('SELECT count(*) FROM elsewhere.pgnetlat_journal'),
	5, 'a member of pg_read_all_stats sees all rows');
like(
	$monitor->error_of(
		q{SELECT elsewhere.pgnetlat_record(clock_timestamp() + interval '1 h')}
	),
	qr/^permission denied to write about another time/,
	'such a member does not choose the time');
is($monitor->value('SELECT elsewhere.pgnetlat_record()'),
	't', 'such a member writes a row about now');
$observer->run('SET default_transaction_read_only = on');
is(record(5), 'f', 'a read-only session writes no row');
$observer->run('RESET default_transaction_read_only');

# ---------------------------------------------------------------------------
# Segments
# ---------------------------------------------------------------------------

sub segments
{
	return $observer->value(
		q{SELECT string_agg(concat(segment, ': ', number), ', ' ORDER BY segment)
			FROM (SELECT segment, count(*) AS number FROM pgnetlat_journal_rows GROUP BY segment) s}
	);
}

$observer->run('TRUNCATE pgnetlat_journal_rows');
my $day = 24 * 60;
record($_ * $day) foreach 0, 0.5, 1 .. 7;
is( segments(),
	'1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1',
	'a segment has a seventh of the time');
record(8 * $day);
is( segments(),
	'1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1',
	'the oldest segment is emptied when it is needed');

# somebody reads for long
$monitor->run('BEGIN', 'SELECT count(*) FROM elsewhere.pgnetlat_journal');
is(record(9 * $day), 't', 'a reader does not keep a row from being written');
like(
	segments(),
	qr/^1: 2, 2: 1,/,
	'while it reads, the current segment grows');
$monitor->run('COMMIT');
record(10 * $day);
like(segments(), qr/^1: 2, 2: 1,/, 'afterwards, the next segment is used');

# somebody changes the tables
$monitor->finish;
my $other = PgNetlat::Client->connect($node);
$other->run('BEGIN', 'LOCK TABLE elsewhere.pgnetlat_journal_2');
is(record(11 * $day), 'f', 'a lock keeps a row from being written');
$other->run('COMMIT');

# the clock is set back
is(record(10.5 * $day), 't', 'the clock may step back');
is( $observer->value('SELECT max(id) - count(*) FROM pgnetlat_journal'),
	$observer->value('SELECT min(id) - 1 FROM pgnetlat_journal'),
	'rows are numbered without gaps');

$billing->run('COMMIT');
$_->responses foreach @blocked;

no_violations($observer);

# whoever drops it wins
$observer->run('BEGIN');
is(record(12 * $day), 't', 'a row is written in a transaction');
$other->put(query('DROP EXTENSION pgnetlat'));
$observer->run('COMMIT');
$other->responses;
is( $observer->value(
		q{SELECT count(*) FROM pg_class WHERE relname LIKE 'pgnetlat%'}),
	0,
	'DROP EXTENSION takes all tables away');
$other->run('CREATE EXTENSION pgnetlat SCHEMA elsewhere',
	'BEGIN', 'DROP EXTENSION pgnetlat');
is(record(0), 'f', 'no row is written while the extension is dropped');
$other->run('COMMIT');

$node->stop;
done_testing();
