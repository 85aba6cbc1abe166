
# Copyright (c) 2026, the pgnetlat authors

# The journal's rows, and what can be asked of them.  The moments are made up, so minutes
# and days pass at once; the figures are those of real sessions.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use JSON::PP;
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
	return "(timestamptz '2026-03-01 00:00:05 UTC' + interval '$_[0] min')";
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
is($plain->value("SELECT count(*) FROM elsewhere.pgnetlat_$_"),
	0, "a plain role gets no answer from pgnetlat_$_")
  foreach map { "$_('-infinity', 'infinity')" }
  qw(episodes past_clients past_statements);
like(
	$plain->value(
		"SELECT what FROM elsewhere.pgnetlat_compare('2026-03-01', '2026-03-02', '2026-03-01', '2026-03-02')"
	),
	qr/^the journal has no rows of the time before or after/,
	'a plain role has nothing to compare');
is( $plain->value(
		q{SELECT elsewhere.pgnetlat_report(at => '2026-03-01 UTC')}),
	undef,
	'a plain role gets no page of the past');
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
# What happened at three?
# ---------------------------------------------------------------------------

sub json
{
	my ($value) = @_;

	return
	  q{'} . (JSON::PP->new->canonical->encode($value) =~ s/'/''/gr) . q{'};
}

# A row that is made up: findings by subject, accounts.
sub write_row
{
	my ($minute, $findings, $clients, $statements) = @_;

	my $arguments = join ', ', at($minute), 60000, json($findings),
	  json($clients // []), json($statements // []), 'NULL';

	die "no row for minute $minute"
	  if $observer->value("SELECT pgnetlat_journal_write($arguments)") ne 't';
	return;
}

# Episodes in the hours from an hour on, one a line, in minutes.
sub episodes
{
	my ($hour) = @_;
	my $since = at($hour * 60);

	return $observer->value(
		"SELECT string_agg(concat_ws(' ', verdict, subject, round(extract(epoch FROM began - $since) / 60),
									 coalesce(round(extract(epoch FROM ended - $since) / 60)::text, 'on'), severity, lost_seconds,
									 evidence), E'\\n' ORDER BY began, subject)
		   FROM pgnetlat_episodes($since, $since + interval '59 min')") // '';
}

is( $observer->value(
		q{SELECT concat_ws(' ', count(*), bool_and(victims = 'shop@127.0.0.1 (2)' AND holder_query LIKE 'UPDATE stock%'
					AND application_name = 'billing' AND lost_seconds > 0 AND evidence LIKE '2 sessions of shop%'))
			FROM pgnetlat_episodes('2026-03-01 UTC', '2026-03-01 01:00 UTC') WHERE verdict = 'blocks others'}
	),
	'1 t',
	'a session that has blocked others is one episode');
is( $observer->value(
		q{SELECT transactions = 10 * number AND round(window_time) >= round(exec_time) AND usename = 'plain'
			FROM pgnetlat_past_clients('2026-03-01 UTC', '2026-03-01 00:02 UTC') c,
				 (SELECT count(*) AS number FROM pgnetlat_journal WHERE at < '2026-03-01 00:02 UTC') j
		   WHERE application_name = 'shop'}),
	't',
	'the account of a client group is the sum over the rows of that time');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_past_statements('2026-03-01 UTC', '2026-03-01 00:01 UTC') WHERE usename = 'plain' AND calls = 10}
	),
	3,
	'so are those of statements');
like(
	$observer->value(q{SELECT pgnetlat_report(at => '2026-03-01 00:10 UTC')}),
	qr/"blocks others"/,
	'the page as of a moment has what was wrong');
is( $observer->value(
		q{SELECT pgnetlat_past_report('2026-03-01 00:02 UTC') = report FROM pgnetlat_journal WHERE id = 1}
	),
	't',
	'the report before a moment comes first');
is( $observer->value(
		q{SELECT pgnetlat_past_report('2026-02-28 23:50 UTC') = report FROM pgnetlat_journal WHERE id = 1}
	),
	't',
	'a report after it is better than none');

# An hour for each case: the looks that have a finding, by what it has lost.
my @cases = (
	[ 'is seen once', { 10 => 1 }, '' ],
	[
		'is seen twice in a row',
		{ 10 => 1, 11 => 3 },
		"chatty shop 9 11 loss 240 lost 3"
	],
	[
		'is missing in two looks',
		{ 10 => 1, 11 => 1, 14 => 2 },
		"chatty shop 9 14 loss 240 lost 2"
	],
	[
		'is missing in three looks',
		{ 10 => 1, 11 => 1, 15 => 2, 16 => 1 },
		"chatty shop 9 11 loss 120 lost 1\nchatty shop 14 16 loss 180 lost 2"
	],
	[
		'goes on at the end',
		{ 17 => 1, 18 => 1, 19 => 1 },
		"chatty shop 16 on loss 180 lost 1"
	]);
$observer->run('TRUNCATE pgnetlat_journal_rows');
foreach my $i (0 .. $#cases)
{
	my ($what, $looks, $expected) = @{ $cases[$i] };
	my $hour = 100 * $i;

	foreach my $minute (0 .. 19)
	{
		my $lost = $looks->{$minute};

		write_row(
			$hour * 60 + $minute,
			$lost
			? [
				{
					severity => 'loss',
					verdict => 'chatty',
					subject => 'shop',
					lost_sessions => $lost,
					evidence => "lost $lost"
				}
			  ]
			: []);
	}

	# the last one goes on for whoever asks then
	is( $what =~ /goes on/
		? $observer->value(
			'SELECT ended IS NULL AND severity = \'loss\' FROM pgnetlat_episodes('
			  . at($hour * 60) . ', '
			  . at($hour * 60 + 25) . q{)})
		: episodes($hour),
		$what =~ /goes on/ ? 't' : $expected,
		"a finding $what");
}

# ---------------------------------------------------------------------------
# What has changed?
# ---------------------------------------------------------------------------

my %shop = (
	datname => 'postgres',
	usename => 'shop',
	application_name => 'shop',
	client_addr => '10.0.0.1',
	qw(sessions 4  transactions 1000  requests 7000  round_trips 7000  exec_time 600
	  exec_cpu_time 600  network_time 3500));
my %item = (
	datname => 'postgres',
	usename => 'shop',
	queryid => '42',
	qw(calls 1000  exec_time 500  network_time 500));

# What is said of the first minute of an hour compared with the second.
sub compared
{
	my ($hour, $before, $after) = @_;

	write_row($hour * 60, [], @$before);
	write_row($hour * 60 + 1, [], @$after);
	return $observer->value(
		q{SELECT string_agg(concat_ws(' ', round(cost_sessions::numeric, 2), change, what), E'\n') FROM pgnetlat_compare(}
		  . join(', ', map { at($hour * 60 + $_) } -0.5, 0.5, 0.5, 1.5)
		  . ')');
}

$observer->run('TRUNCATE pgnetlat_journal_rows');
is( $observer->value(
		q{SELECT what FROM pgnetlat_compare('2026-03-01 UTC', '2026-03-01 01:00 UTC', '2026-03-02 UTC', '2026-03-02 01:00 UTC')}
	),
	'the journal has no rows of the time before or after',
	'an empty journal has an answer');
is( compared(1, [ [ \%shop ], [ \%item ] ], [ [ \%shop ], [ \%item ] ]),
	'0.00 nothing has changed',
	'nothing has changed');
is( compared(
		3,
		[ [ \%shop ] ],
		[
			[
				{
					%shop,
					qw(exec_time 4600  exec_lock_time 4000  network_time 36400)
				}
			]
		]),
	'0.62 slower shop@10.0.0.1: 4.10 -> 41 ms per transaction: round trip 0.50 -> 5.20 ms (7 of them): +32.9 ms; locks +4 ms',
	'the path is longer, and there are lock waits');
is( compared(
		5,
		[ [], [ \%item ] ],
		[ [], [ { %item, exec_time => 12_500 } ] ]),
	'0.20 slower statement 42 of shop: 1 -> 13 ms per call: execution +12 ms',
	'a statement is slower');
is( compared(
		7,
		[ [ \%shop ] ],
		[
			[
				{
					%shop,
					requests => 21_000,
					round_trips => 21_000,
					network_time => 10_500
				}
			]
		]),
	'0.12 slower shop@10.0.0.1: 4.10 -> 11.1 ms per transaction: 7 -> 21 round trips of 0.50 ms: +7 ms',
	'transactions take more round trips');
is( compared(
		9,
		[ [ \%shop ] ],
		[
			[
				{
					%shop,
					map { $_ => 3 * $shop{$_} }
					  qw(transactions requests round_trips exec_time exec_cpu_time network_time)
				}
			]
		]),
	'0.14 more often shop@10.0.0.1: 16.7 -> 50 transactions per second',
	'there are more transactions');
is( compared(
		11, [ [ \%shop ] ], [ [ { %shop, application_name => 'web' } ] ]),
	"0.07 new web\@10.0.0.1: new: 16.7 transactions per second of 4.10 ms\n-0.07 vanished shop\@10.0.0.1: vanished: 16.7 transactions per second of 4.10 ms",
	'a client group is new, and another one has vanished');
is( compared(
		13,
		[ [ \%shop ] ],
		[
			[
				{
					%shop,
					qw(transactions 0  requests 0  round_trips 0  network_time 0
					  exec_cpu_time 0),
					exec_time => 180_000,
					exec_lock_time => 180_000
				}
			]
		]),
	'3.00 slower shop@10.0.0.1: 0.00 -> 180 s per transaction: locks +180 s',
	'a client group is blocked');

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
