
# Copyright (c) 2026, the pgnetlat authors

# The worker that has the journal written, and the findings in the server's log.  Looks
# are a fraction of a second apart.  A minute has one row, so rows are removed to see more.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node(
	'journal',
	init => { allows_streaming => 1 },
	conf => "pgnetlat.journal_interval = '200ms'\nmax_worker_processes = 12\n"
);

sub set
{
	my ($server, %settings) = @_;

	$server->append_conf('postgresql.conf', "pgnetlat.$_ = '$settings{$_}'")
	  foreach sort keys %settings;
	$server->reload;
	return;
}

sub rows { return $observer->value('SELECT count(*) FROM pgnetlat_journal'); }

sub new_row_comes
{
	my ($what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$observer->run(q{SET lock_timeout = '60s'},
		'TRUNCATE pgnetlat_journal_rows');
	return ok($observer->poll(sub { rows() > 0 }), "a row comes $what");
}

# Waits for a line of the log after an offset.
sub line_comes
{
	my ($server, $offset, $line, $what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return ok($observer->poll(sub { server_log($server, $offset) =~ $line }),
		$what);
}

$observer->run('CREATE ROLE plain LOGIN',
	'CREATE ROLE monitor LOGIN IN ROLE pg_read_all_stats');

# ---------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------

is(rows(), 0, 'without the setting, there are no rows');
set($node, journal_database => 'postgres');
new_row_comes('when the setting is reloaded');
my $clients = $observer->value(
	q{SELECT count(*) FROM pgnetlat_sessions s JOIN pg_stat_activity a USING (pid) WHERE a.backend_type LIKE 'pgnetlat%'}
);
is($clients, 0, 'the worker is not counted');
set($node, journal_role => 'monitor');
new_row_comes('with a role that may read all statistics');

my $log = log_size($node);
set($node, journal_role => 'plain');
line_comes(
	$node,
	$log,
	qr/pgnetlat could not write its journal: permission denied for function pgnetlat_record/,
	'a role without rights writes no row');
$log = log_size($node);
set($node, journal_role => 'nobody');
line_comes(
	$node, $log,
	qr/pgnetlat could not write its journal: role "nobody" does not exist/,
	'a role that does not exist is logged');
set($node, journal_role => '');
new_row_comes('when the role is right again');

# ---------------------------------------------------------------------------
# The extension and the database
# ---------------------------------------------------------------------------

$log = log_size($node);
$observer->run('CREATE DATABASE other');
set($node, journal_database => 'other');
line_comes(
	$node, $log,
	qr/extension "pgnetlat" does not exist in database "other"/,
	'a database without the extension is logged');
$node->safe_psql('other', 'CREATE EXTENSION pgnetlat');
ok( $observer->poll(
		sub {
			$node->safe_psql('other', 'SELECT count(*) FROM pgnetlat_journal')
			  > 0;
		}),
	'rows come when it has the extension');
$node->safe_psql('other', 'DROP EXTENSION pgnetlat');
$log = log_size($node);
$observer->run('DROP DATABASE other');
line_comes(
	$node, $log,
	qr/database "other" does not exist/,
	'the database can be dropped');
set($node, journal_database => 'postgres');
new_row_comes('in another database');

# ---------------------------------------------------------------------------
# Findings in the log
# ---------------------------------------------------------------------------

my $update = 'UPDATE stock SET amount = amount - 1 WHERE id = 7';
$observer->run(
	'CREATE TABLE stock AS SELECT id, 1000 AS amount FROM generate_series(1, 100) id'
);

# Runs code while a session of an application blocks another: findings about the same one are
# one episode.
sub while_blocked
{
	my ($application, $code) = @_;
	my ($billing, $shop) =
	  map { PgNetlat::Client->connect($node, application_name => $_) }
	  $application, 'shop';

	$billing->run('BEGIN', $update);
	$shop->put(query($update));
	$code->();
	$billing->run('COMMIT');
	$shop->responses;
	$_->finish foreach $billing, $shop;
	return;
}

$log = log_size($node);
set($node, log_findings => 0);
while_blocked(
	'billing',
	sub {
		line_comes(
			$node,
			$log,
			qr/LOG:  pgnetlat: began: blocks others: billing, pid \d+: 1 session of shop/,
			'a finding begins');
	});
line_comes(
	$node,
	$log,
	qr/LOG:  pgnetlat: ended: blocks others: billing, pid \d+: after \d+ min, lost \d+\.\d session-minutes/,
	'it ends');
unlike(
	server_log($node, $log),
	qr/UPDATE stock/,
	'the log has no text of a statement');
my $began = () = server_log($node, $log) =~ /began: blocks others/g;
is($began, 1, 'it begins once')
  or
  diag(join "\n", grep { /pgnetlat: / } split /\n/, server_log($node, $log));

$node->append_conf('postgresql.conf', 'log_min_duration_statement = 0');
$log = log_size($node);
$node->reload;
while_blocked(
	'payroll',
	sub {
		line_comes(
			$node, $log,
			qr/pgnetlat: began: blocks others: .*UPDATE stock/,
			'the log has the text where it has all texts');
	});
$node->append_conf('postgresql.conf', 'log_min_duration_statement = -1');

# ---------------------------------------------------------------------------
# A standby
# ---------------------------------------------------------------------------

# who waits for an advisory lock since connecting is no standby of a leader here
$observer->run(q{SELECT pgnetlat_set_threshold('leader_standby', 0)});
my $standby = start_standby('standby', $node);
$log = log_size($standby);
my $holder =
  PgNetlat::Client->connect($standby, application_name => 'holder');
my $waiter =
  PgNetlat::Client->connect($standby, application_name => 'waiter');
$holder->run('SELECT pg_advisory_lock(1)');
$waiter->put(query('SELECT pg_advisory_lock(1)'));
line_comes(
	$standby, $log,
	qr/pgnetlat: began: blocks others: holder/,
	'findings are logged on a standby');
unlike(
	server_log($standby, $log),
	qr/could not write its journal/,
	'a standby does not try to write rows');
$standby->promote;
$standby->safe_psql('postgres', 'TRUNCATE pgnetlat_journal_rows');
ok( $observer->poll(
		sub {
			$standby->safe_psql('postgres',
				'SELECT count(*) FROM pgnetlat_journal') > 0;
		}),
	'a promoted standby writes rows');
$standby->stop('immediate');

# ---------------------------------------------------------------------------
# What goes wrong
# ---------------------------------------------------------------------------

set($node, log_findings => -1);
my $locker = PgNetlat::Client->connect($node);
$locker->run('BEGIN', 'LOCK TABLE pgnetlat_journal_rows');
$locker->run('TRUNCATE pgnetlat_journal_rows', 'COMMIT');
ok($observer->poll(sub { rows() > 0 }), 'rows come after a lock');

my $pid;
ok( $observer->poll(
		sub {
			$pid = $observer->value(
				q{SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgnetlat journal'}
			);
		}),
	'the worker has its own name');
$observer->run("SELECT pg_terminate_backend($pid)");
new_row_comes('after the worker was terminated');
no_violations($observer);

$node->stop('immediate');
$node->start;
$observer = PgNetlat::Observer->connect($node);
cmp_ok(rows(), '>=', 1, 'rows survive a crash');
new_row_comes('after a crash');

# ---------------------------------------------------------------------------
# No worker can be had
# ---------------------------------------------------------------------------

SKIP:
{
	skip 'sessions start the sampler', 1 if $PgNetlat::Test::by_sessions;
	$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
	$node->append_conf('postgresql.conf',
		'max_logical_replication_workers = 0');
	$node->stop;
	$log = log_size($node);
	$node->start;
	$observer = PgNetlat::Observer->connect($node);
	ok(1, 'the server starts with few workers');
}
$node->stop;
done_testing();
