
# Copyright (c) 2026, the pgnetlat authors

# Findings about locks, for real waits: each wait is booked once, on whoever
# holds the lock, with or without a client; and the advice frees those who wait.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Figures;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) =
  start_node('locks', conf => 'max_prepared_transactions = 2');
$observer->run(
	'CREATE TABLE t (i int PRIMARY KEY, v int)',
	'INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i',
	'CREATE TABLE exported (i int)',
	'CREATE ROLE plain LOGIN',
	'GRANT ALL ON t TO plain');

sub client { return PgNetlat::Client->named($node, @_); }

# Findings about locks, in their order.
sub lock_findings
{
	return grep {
		$_->{verdict} =~
		  /^(blocks others|blocked|lock contention|idle in transaction)$/
	} $observer->findings(@_);
}

# Waits until findings about locks meet a condition (on an array of them, in
# @_); returns them.
sub expect_findings
{
	my ($condition, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @found;

	ok( $observer->poll(
			sub { @found = lock_findings(); return $condition->(@found); }),
		$name) or diag(explain(\@found));
	note(
		"$_->{severity} $_->{subject}, $_->{verdict}: $_->{evidence} $_->{advice}"
	) foreach @found;
	return @found;
}

sub begin
{
	$observer->run('SELECT pgnetlat_reset()');
	return;
}

# Has a client run a query that waits for a lock.
sub blocked
{
	my ($client, $sql) = @_;

	$client->put(query($sql));
	$observer->poll(
		sub {
			$observer->value(
				'SELECT cardinality(pg_blocking_pids(' . $client->pid . '))');
		}) or die "$sql does not wait";
	return $client;
}

sub doing
{
	my ($client) = @_;

	return $observer->value(
		'SELECT doing FROM pgnetlat_now(200) WHERE pid = ' . $client->pid)
	  // '';
}

# These have done something before, and long before they wait.
my @worker = map { client('worker') } 1 .. 2;
$_->run('SELECT 1') foreach @worker;

# ---------------------------------------------------------------------------
# A prepared transaction beside a client
# ---------------------------------------------------------------------------

my $holder = client('batch', tcp => 1);
my $prepares = client('prepares');
my @shop = map { client('shop') } 1 .. 3;
my $pay = client('pay');
$prepares->run(
	'BEGIN',
	'UPDATE t SET v = 1 WHERE i = 2',
	q{PREPARE TRANSACTION 'it''s forgotten'});
$prepares->finish;
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1');
begin();
blocked($_, 'UPDATE t SET v = 2 WHERE i = 1') foreach @shop;
blocked($pay, 'UPDATE t SET v = 2 WHERE i = 2');
my @found = expect_findings(
	sub {
			 @_ == 2
		  && $_[0]{lost_sessions} > 1
		  && $_[1]{lost_sessions} * 2.5 < $_[0]{lost_sessions}
		  && $_[1]{lost_sessions} * 3.5 > $_[0]{lost_sessions};
	},
	'two holders: each wait is booked once, on its holder');
is( "$found[0]{verdict} $found[0]{pid}",
	'blocks others ' . $holder->pid,
	'two holders: the first finding is about the client');
like(
	$found[0]{evidence},
	qr/^3 sessions of shop are blocked now \([\d.]+ m?s lost so far\)\. Holder: idle in transaction for [\d.]+ s since UPDATE t SET v = 1 WHERE i = 1; mostly its client was thinking$/,
	'two holders: the evidence is two sentences');
is( "$found[1]{verdict}: $found[1]{subject_kind} $found[1]{subject}",
	'blocks others: holder prepared transaction in postgres',
	'two holders: the second finding is about the prepared transaction');
is($found[1]{datname}, 'postgres', 'two holders: it has the database');
like(
	$found[1]{evidence},
	qr/^1 session of pay is blocked now \([\d.]+ m?s lost so far\)\. Holder: 'it''s forgotten' of postgres, prepared [\d.]+ s ago$/,
	'two holders: its evidence names the transaction');
like(
	$found[1]{advice},
	qr/COMMIT PREPARED 'it''s forgotten' or ROLLBACK PREPARED 'it''s forgotten'/,
	'two holders: its advice has the commands');
$observer->run(q{ROLLBACK PREPARED 'it''s forgotten'});
$pay->responses;
$holder->run('COMMIT');
$_->responses foreach @shop;

# ---------------------------------------------------------------------------
# A queue behind DDL, which waits for an export whose client does not read
# ---------------------------------------------------------------------------

my $export = client('export', tcp => 1, receive_buffer => 8192);
my $migration = client('migration');
my @reader = map { client('web') } 1 .. 3;
$export->run('BEGIN', 'LOCK TABLE exported IN ACCESS SHARE MODE');
$export->put(
	query(
		q{COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT}
	));
$observer->await($export->pid, sub { $_->{state} eq 'sending' });
begin();
blocked($migration, 'ALTER TABLE exported ADD v int');
blocked($_, 'SELECT * FROM exported') foreach @reader;
@found = expect_findings(
	sub {
			 @_ == 1
		  && $_[0]{lost_sessions} > 1
		  && $_[0]{evidence} =~ /^4 sessions /
		  && $_[0]{advice}   =~ /pg_cancel_backend/;
	},
	'a queue behind DDL: the only finding is about the export');
is($found[0]{pid}, $export->pid, 'a queue behind DDL: it has its pid');
like(
	$found[0]{evidence},
	qr/^4 sessions \(web 3, migration 1\) are blocked now \([\d.]+ m?s lost so far\), 3 of them behind pid @{[ $migration->pid ]}: ALTER TABLE exported ADD v int\. Holder: sending for [\d.]+ s: COPY .*$/,
	'a queue behind DDL: the evidence names the statement at its head');
unlike($found[0]{advice}, qr/commit/i,
	'a queue behind DDL: a holder that is sending is not told to commit');
my ($cancel, $terminate) =
  $found[0]{advice} =~
  /(SELECT pg_\w+_backend\(\d+\)).*?(SELECT pg_\w+_backend\(\d+\))/;
is( $cancel,
	'SELECT pg_cancel_backend(' . $migration->pid . ')',
	'a queue behind DDL: the advice is to cancel the DDL first');
is( $terminate,
	'SELECT pg_terminate_backend(' . $export->pid . ')',
	'a queue behind DDL: then to end the export');
like($found[0]{advice}, qr/lock_timeout/,
	'a queue behind DDL: the advice names lock_timeout');
ok( $observer->poll(
		sub {
			doing($reader[0]) =~
			  /^blocked by @{[ $export->pid ]} via @{[ $migration->pid ]} export/;
		}),
	'a queue behind DDL: pgnetlat_now names both') or diag(doing($reader[0]));
ok( $observer->poll(
		sub {
			doing($migration) =~
			  /^3 behind; blocked by @{[ $export->pid ]} export.*: sending/;
		}),
	'a queue behind DDL: pgnetlat_now has the number behind it'
) or diag(doing($migration));
$observer->run($cancel);
$_->responses foreach @reader;
ok(!eval { $migration->responses; 1 },
	'a queue behind DDL: cancelling it frees the others');
$observer->run($terminate);
$export->vanish;
$observer->ended('export');

# ---------------------------------------------------------------------------
# A holder that waits for data
# ---------------------------------------------------------------------------

$holder = client('loader');
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1');
$holder->put(query('COPY exported FROM STDIN'));
$holder->until('G');
begin();
blocked($shop[0], 'UPDATE t SET v = 2 WHERE i = 1');
@found = expect_findings(
	sub {
		@_ == 1
		  && $_[0]{lost_sessions} > 0.5
		  && $_[0]{evidence} =~ /mostly it was waiting for data/;
	},
	'a holder that waits for data: it is the only finding');
like($found[0]{advice}, qr/COPY/,
	'a holder that waits for data: the advice is about COPY');
unlike(
	$found[0]{advice},
	qr/commit before/i,
	'a holder that waits for data: it is not told to commit before');
$holder->put(copy_fail('enough'));
$holder->until('Z');
$holder->run('ROLLBACK');
$shop[0]->responses;

# ---------------------------------------------------------------------------
# Standbys of a leader: they have only ever waited for the advisory lock
# ---------------------------------------------------------------------------

my $leader = client('scheduler', tcp => 1);
$leader->run('SELECT pg_advisory_lock(1)');
begin();
my @standby = map { client('scheduler') } 1 .. 2;
blocked($_, 'SELECT pg_advisory_lock(1)') foreach @standby;
@found = expect_findings(
	sub {
		@_ == 1
		  && $_[0]{evidence} =~
		  /^2 sessions of scheduler have waited .* \([1-9]\d[.\d]* s so far\)/;
	},
	'leader election: there is one finding');
is($found[0]{severity}, 'note', 'leader election: it is a note');
is($found[0]{pid}, $leader->pid, 'leader election: it is about the leader');
unlike($found[0]{advice}, qr/pg_terminate_backend/,
	'leader election: the advice does not end the leader');
like($found[0]{advice}, qr/by design/,
	'leader election: the advice says that it may be by design');
is(scalar(grep { ($_->{severity} // '') eq 'outage' } $observer->findings),
	0, 'leader election: nothing is an outage');
like(
	doing($leader),
	qr/^blocks 2; after SELECT pg_advisory_lock\(1\)/,
	'leader election: pgnetlat_now has the leader, which is idle');

# ---------------------------------------------------------------------------
# A leaked advisory lock: sessions that did something else before wait for it
# ---------------------------------------------------------------------------

begin();
blocked($_, 'SELECT pg_advisory_lock(1)') foreach @worker;
@found = expect_findings(
	sub {
		@_ == 1
		  && $_[0]{severity} eq 'outage'
		  && $_[0]{evidence} =~ /^2 sessions of worker are blocked now/;
	},
	'a leaked advisory lock: it is an outage');
is($found[0]{pid}, $leader->pid,
	'a leaked advisory lock: the finding is about its holder');
like(
	$found[0]{evidence},
	qr/ Holder: idle outside a transaction for [\d.]+ s since SELECT pg_advisory_lock\(1\)/,
	'a leaked advisory lock: the evidence says that there is no transaction');
like($found[0]{advice}, qr/pg_advisory_unlock/,
	'a leaked advisory lock: the advice is about such locks');
unlike($found[0]{advice}, qr/idle_in_transaction/,
	'a leaked advisory lock: the advice is not about transactions');
$_->cancel, $_->until('Z') foreach @worker, @standby;
$_->finish foreach $leader, @standby;

# ---------------------------------------------------------------------------
# An autovacuum worker
# ---------------------------------------------------------------------------

$observer->run(
	'CREATE TABLE dead WITH (fillfactor = 10, autovacuum_enabled = off) AS
	 SELECT i, repeat(\'x\', 500) AS x FROM generate_series(1, 3000) i',
	'DELETE FROM dead',
	'ALTER SYSTEM SET autovacuum_vacuum_cost_delay = 100',
	'ALTER SYSTEM SET autovacuum_vacuum_cost_limit = 1',
	'ALTER SYSTEM SET autovacuum_naptime = 3',
	'ALTER SYSTEM SET autovacuum = on',
	'ALTER TABLE dead RESET (autovacuum_enabled)',
	'SELECT pg_reload_conf()');
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pg_stat_progress_vacuum WHERE relid = 'dead'::regclass}
			);
		}),
	'autovacuum: it works on the table');

# it gives way to others, but not at once
$pay->run(q{SET deadlock_timeout = '1h'});
begin();
blocked($pay, 'BEGIN; LOCK TABLE dead; COMMIT');
@found = expect_findings(
	sub { @_ == 1 && $_[0]{lost_sessions} > 0.5; },
	'autovacuum: the only finding is about it');
my $worker = $observer->account($pay->pid)->{blocked_by};
is( "$found[0]{verdict}: $found[0]{subject_kind} $found[0]{subject}",
	"blocks others: holder autovacuum worker in postgres, pid $worker",
	'autovacuum: the finding names it');
is($found[0]{pid}, $worker, 'autovacuum: the finding has its pid');
like(
	$found[0]{evidence},
	qr/^1 session of pay is blocked now \(.* lost so far\)\. Holder: autovacuum: VACUUM (ANALYZE )?public\.dead$/,
	'autovacuum: the evidence has its table');
like(
	$found[0]{advice},
	qr/pg_cancel_backend\($worker\)/,
	'autovacuum: the advice has the command that ends it');
$observer->run(
	'ALTER SYSTEM SET autovacuum = off',
	'SELECT pg_reload_conf()',
	"SELECT pg_cancel_backend($worker)");
$pay->responses;

# ---------------------------------------------------------------------------
# Made-up figures: waits without a holder are lost where they were waited
# ---------------------------------------------------------------------------

use_figures($observer);
my %waits = (requests => 1, exec_time => 30000, exec_lock_time => 30000);
my %session = (%waits, state => 'executing', age => 30);
session(
	application_name => 'batch',
	qw(pid 101  requests 2  client_time 31000  in_xact_wait_time 31000),
	state => 'waiting in transaction',
	qw(age 31  blocking_time 90000));
add('b',
	qw(datid 5  usesysid 10),
	application_name => "'batch'",
	backend_type => "'client backend'",
	qw(blocked_time 90000  blocked_by_client_time 90000));
group(
	%waits,
	application_name => 'behind',
	qw(sessions 3  exec_time 90000  exec_lock_time 90000));
session(
	%session,
	application_name => 'behind',
	pid => $_,
	blocked_by => 101) foreach 201 .. 203;
group(
	%waits,
	application_name => 'circle',
	qw(sessions 2  exec_time 60000  exec_lock_time 60000));
session(%session, application_name => 'circle', pid => $_) foreach 301, 302;
@found = grep { $_->{verdict} =~ /^block/ } found();
is( join('; ', map { "$_->{verdict} $_->{application_name}" } @found),
	'blocks others batch; blocked circle',
	'a deadlock beside a holder: a finding for each');
near($found[0]{lost_sessions},
	1.5,
	'a deadlock beside a holder: the holder has what others waited for it');
near($found[1]{lost_sessions}, 1,
	'a deadlock beside a holder: the rest belongs to the group in the circle'
);

no_violations($observer);
$node->stop;
done_testing();
