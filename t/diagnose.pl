
# Copyright (c) 2026, the pgnetlat authors

# Loads with a known fault that need no network: the right verdict comes first,
# with evidence, for the right subject, and only for those who may see it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) =
  start_node('diagnose', conf => 'max_prepared_transactions = 2');
$observer->run(
	'CREATE TABLE t AS SELECT i, 0 AS v FROM generate_series(1, 3) i',
	'CREATE ROLE plain LOGIN',
	'GRANT ALL ON t TO PUBLIC',
	q{CREATE FUNCTION compute(seconds float) RETURNS void LANGUAGE plpgsql AS
	  $$ DECLARE ends timestamptz := clock_timestamp() + seconds * interval '1 s';
	  BEGIN WHILE clock_timestamp() < ends LOOP END LOOP; END $$});

sub client { return PgNetlat::Client->named($node, @_); }

sub findings { return $observer->findings(@_); }

sub begin
{
	$observer->run('SELECT pgnetlat_reset()');
	return;
}

sub expect_first
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return expect_verdict($observer, @_);
}

sub doing
{
	my ($client) = @_;

	return $observer->value(
		'SELECT doing FROM pgnetlat_now WHERE pid = ' . $client->pid);
}

# ---------------------------------------------------------------------------
# A forgotten transaction
# ---------------------------------------------------------------------------

begin();
is( scalar(
		grep { $_->{verdict} !~ /^(starved|no problem found)$/ } findings()),
	0,
	'without figures there is no finding');
my $holder = client('forgets', tcp => 1);
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1');
my $row = expect_first('idle in transaction', 'a forgotten transaction');
is($row->{subject_kind}, 'session',
	'a forgotten transaction: the finding is about a session');
is($row->{pid}, $holder->pid,
	'a forgotten transaction: the finding has the pid');
is( $row->{subject},
	'forgets@127.0.0.1, pid ' . $holder->pid,
	'a forgotten transaction: the subject names the client');
is($row->{usename}, 'postgres',
	'a forgotten transaction: the finding has the role');
is($row->{datname}, 'postgres',
	'a forgotten transaction: the finding has the database');
is($row->{application_name},
	'forgets', 'a forgotten transaction: the finding has the application');
is($row->{client_addr}, '127.0.0.1',
	'a forgotten transaction: the finding has the address');
is($row->{queryid}, undef,
	'a forgotten transaction: the finding has no query identifier');
is($row->{saving_sessions},
	$row->{lost_sessions},
	'a forgotten transaction: all of it could be saved');
cmp_ok($row->{saving_share}, '>', 0.5,
	'a forgotten transaction: most of its time could be saved');
like(
	$row->{evidence},
	qr/\. It has been idle in transaction for [\d.]+ s$/,
	'a forgotten transaction: the evidence has its age');
like(
	$row->{advice},
	qr/idle_in_transaction_session_timeout/,
	'a forgotten transaction: the advice names the timeout');

# ---------------------------------------------------------------------------
# Others wait for it
# ---------------------------------------------------------------------------

begin();
my @victim = map { client('waits') } 1 .. 2;
$_->put(query('UPDATE t SET v = 2 WHERE i = 1')) foreach @victim;
$row = expect_first(
	'blocks others',
	'others wait for its locks',
	sub {
		$_->{evidence} =~
		  /^2 sessions of waits are blocked now .*; mostly its client was thinking$/
		  && $_->{lost_sessions} > 0.5;
	});
is($row->{pid}, $holder->pid,
	'others wait for its locks: the finding is about the holder');
cmp_ok(
	$row->{saving_sessions},
	'>=',
	$row->{lost_sessions} * 0.99,
	'others wait for its locks: all of that could be saved');
is($row->{saving_share}, undef,
	'others wait for its locks: saving_share is NULL');
like(
	$row->{advice},
	qr/commit before/,
	'others wait for its locks: the advice is to commit before');
like(
	$row->{advice},
	qr/SELECT pg_terminate_backend\(@{[ $holder->pid ]}\)/,
	'others wait for its locks: the advice has pg_terminate_backend()');
like(
	$row->{evidence},
	qr/\. Holder: idle in transaction for [\d.]+ s since UPDATE t/,
	'others wait for its locks: the evidence has its last statement');

# once the holder is known for as long as they have waited
ok( $observer->poll(
		sub {
			1 == grep { $_->{verdict} ne 'starved' } findings();
		}),
	'others wait for its locks: no finding about the waiting sessions'
) or diag(explain([ findings() ]));
$victim[1]->cancel;
$victim[1]->until('Z');

# ---------------------------------------------------------------------------
# Holders that come and go
# ---------------------------------------------------------------------------

# Has another session wait for one that ends.
sub hold_and_end
{
	my $brief = client('brief');

	$brief->run('BEGIN', 'SELECT pg_advisory_xact_lock(7)');
	$victim[1]->put(query('SELECT pg_advisory_xact_lock(7)'));
	pause(1200);
	$brief->run('COMMIT');
	$brief->finish;
	$victim[1]->responses;
	return;
}

# The row in pgnetlat_blockers is older than the second window.
hold_and_end();
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT sum(blocked_time) FROM pgnetlat_blockers_last('1 ms')
				  WHERE application_name = 'brief'}
			) == 0;
		}),
	'holders that come and go: one was there before the window');
hold_and_end();
my @brief = $observer->rows(
	q{SELECT * FROM pgnetlat_diagnose('1 s') WHERE application_name = 'brief'}
);
is( $brief[0]{verdict},
	'blocks others',
	'holders that come and go: the finding is about them')
  or diag(
	explain([ $observer->rows(q{SELECT * FROM pgnetlat_diagnose('1 s')}) ]));
$victim[1]->finish;

# ---------------------------------------------------------------------------
# A holder without a client
# ---------------------------------------------------------------------------

$holder->run(q{PREPARE TRANSACTION 'held'});
begin();
$row = expect_first('blocks others', 'a prepared transaction holds a lock');
is($row->{subject_kind}, 'holder',
	'a prepared transaction: the finding is about the holder');
like($row->{advice}, qr/pg_prepared_xacts/,
	'a prepared transaction: the advice names pg_prepared_xacts');
$observer->run(q{ROLLBACK PREPARED 'held'});
$victim[0]->responses;

# ---------------------------------------------------------------------------
# A busy server
# ---------------------------------------------------------------------------

begin();
my @sleeper = map { client('sleeps') } 1 .. 3;
for (1 .. 30)
{
	$_->put(query('SELECT pg_sleep(0.03)')) foreach @sleeper;
	$_->responses foreach @sleeper;
}
$row = expect_first(
	'server-bound',
	'statements that sleep',
	sub { $_->{evidence} =~ /are other waits$/ });
is($row->{subject_kind}, 'client',
	'statements that sleep: the finding is about their group');
is($row->{application_name},
	'sleeps', 'statements that sleep: the finding has the application');
is($row->{pid}, undef, 'statements that sleep: the finding has no pid');
like($row->{advice}, qr/pgnetlat_waits/,
	'statements that sleep: the advice names pgnetlat_waits');

# statements that compute compete with everything else on the machine
begin();
my $busy = client('computes');
$busy->run('SELECT compute(0.02)') for 1 .. 60;
my ($computes) =
  grep { ($_->{application_name} // '') eq 'computes' } findings();
$computes //= { verdict => 'nothing' };
my $account = $observer->account($busy->pid);
like(
	$computes->{verdict},
	$account->{exec_cpu_time} - $account->{run_queue_time} >
	  0.6 * $account->{exec_time}
	? qr/^server-bound$/
	: qr/^(server-bound|nothing|starved)$/,
	'statements that compute: server-bound if they had a processor');
like(
	$computes->{evidence},
	qr/ are CPU time/,
	'statements that compute: the evidence says CPU'
) if $computes->{verdict} eq 'server-bound';

# short lock waits
begin();
my @waiter = map { client('queues') } 1 .. 3;
for (1 .. 40)
{
	$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 2');
	$_->put(query('UPDATE t SET v = 2 WHERE i = 2')) foreach @waiter;
	pause(45);
	$holder->run('COMMIT');
	$_->responses foreach @waiter;
}
$row = expect_first('blocks others', 'many short lock waits');
is($row->{pid}, $holder->pid,
	'many short lock waits: the finding is about the holder');
is(scalar(grep { $_->{verdict} eq 'server-bound' } findings()),
	0, 'many short lock waits: no finding about the server');

# ---------------------------------------------------------------------------
# Clients
# ---------------------------------------------------------------------------

begin();
my $thinker = client('thinks');
for (1 .. 40)
{
	# less than what counts as idle in transaction
	$thinker->run('BEGIN');
	pause(60);
	$thinker->run('COMMIT');
}
$row = expect_first('client-bound', 'a client that thinks');
is($row->{application_name},
	'thinks', 'a client that thinks: the finding has the application');
like(
	$row->{evidence},
	qr/^The client thinks [\d.]+ of [\d.]+ ms per request/,
	'a client that thinks: the evidence has its time per request');

foreach my $transport ('a Unix-domain socket', 'TCP')
{
	begin();
	my $reader = client(
		'reads',
		tcp => $transport eq 'TCP',
		receive_buffer => 8192);
	$reader->put(query(q{SELECT repeat('x', 100000000)}));
	$row = expect_first('slow reader',
		"a client that does not read from $transport");
	is($row->{pid}, $reader->pid,
		"$transport: the finding has the slow reader's pid");
	like(
		$row->{evidence},
		qr/^The client was not reading for/,
		"$transport: the evidence says that the client was not reading");
	$observer->run('SELECT pg_terminate_backend(' . $reader->pid . ')');
	$observer->ended('reads');
	$reader->vanish;
}

begin();
my $loader = client('loads');
$loader->put(query('COPY t FROM STDIN'));
$loader->until('G');
$row =
  expect_first('slow loader', 'a client that does not send what it copies');
is($row->{pid}, $loader->pid,
	'a client that does not send: the finding has its pid');
$loader->put(copy_fail('enough'));
$loader->until('Z');

# ---------------------------------------------------------------------------
# Nothing to be gained
# ---------------------------------------------------------------------------

begin();
my $looper = client('loops', tcp => 1);
$looper->run('BEGIN');
$looper->run("SELECT v FROM t WHERE i = $_") for 1 .. 2000;
$looper->run('COMMIT');

# its client may have to wait for a processor, and then is said to think
ok( !(  grep {
			$_->{subject_kind} eq 'statement'
			  || ($_->{application_name} // '') eq 'loops'
			  && $_->{verdict} !~
			  /^(client-bound|idle in transaction|starved)$/
		} findings()),
	'a loop over a path without length has no finding'
) or diag(explain([ findings() ]));

# ---------------------------------------------------------------------------
# Unused connections
# ---------------------------------------------------------------------------

$_->finish foreach $looper, $loader, $thinker, $busy, @waiter, @sleeper;
my @held = map { client('held') } 1 .. 75;
begin();
ok( $observer->poll(
		sub {
			($row) =
			  grep { $_->{verdict} eq 'too many connections' } findings();
		}),
	'too many connections: the finding is there');
is($row->{subject_kind}, 'server',
	'too many connections: the finding is about the server');
like(
	$row->{evidence},
	qr/^\d+ of 100 connections are held: .*\.  A pool of \d would/,
	'too many connections: the evidence has the size of a pool');
$_->finish foreach @held;

# ---------------------------------------------------------------------------
# Privileges
# ---------------------------------------------------------------------------

begin();
my $plain = client('plain', user => 'plain');
my $own = client('own', user => 'plain');
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1');
$own->run('BEGIN');
my %eyes;
ok( $observer->poll(
		sub {
			%eyes = map { $_->{pid} => 1 } grep { $_->{pid} } findings();
			$eyes{ $holder->pid } && $eyes{ $own->pid };
		}),
	'a superuser sees findings of both roles');
is( join(' ',
		map  { $_->{pid} // '' }
		grep { $_->{subject_kind} ne 'server' } findings($plain)),
	$own->pid,
	'a plain role sees its own findings');
my ($hidden) = grep { $_->{verdict} eq 'not visible' } findings($plain);
like(
	$hidden->{evidence},
	qr/^\d+ of \d+ sessions, and any problems they have, are hidden from plain/,
	'a plain role sees how many sessions are hidden');
like($hidden->{advice}, qr/pg_read_all_stats/,
	'a plain role sees which role would show them');

# ---------------------------------------------------------------------------
# Its plan
# ---------------------------------------------------------------------------

my $plans =
  q{SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'CachedPlan' AND ident LIKE '%pgnetlat_findings%'};
my $reader = PgNetlat::Observer->connect($node);
is($reader->value($plans), 0, 'before the first call, there is no plan');
$reader->run('CREATE SCHEMA elsewhere');
foreach my $schema (qw(public public elsewhere))
{
	$reader->run("ALTER EXTENSION pgnetlat SET SCHEMA $schema")
	  if $schema ne 'public';
	$reader->run("SELECT * FROM $schema.pgnetlat_diagnose()");
	is($reader->value($plans), 1, "in $schema: there is one plan");
	is( $reader->value('SHOW search_path'),
		'"$user", public',
		"in $schema: search_path is the caller's");
}
unlike(
	join(
		"\n",
		map { $_->{'QUERY PLAN'} } $reader->rows(
			q{EXPLAIN SELECT * FROM elsewhere.pgnetlat_findings('1 min', true)}
		)),
	qr/Function Scan on pgnetlat_findings/,
	'the plan is that of the query, not of a call');
$reader->run('ALTER EXTENSION pgnetlat SET SCHEMA public');

no_violations($observer);
$node->stop;
done_testing();
