
# Copyright (c) 2026, the pgnetlat authors

# Many lock waits at once: in one long chain, for many locks, for many prepared
# transactions, and behind one ALTER TABLE, while an unrelated wait has a holder
# of its own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	MANY => 100,
	READERS => 300,
};

my ($node, $observer) = start_node('many_waits',
		conf => "max_connections = 450\n"
	  . "deadlock_timeout = 1h\n"
	  . 'max_prepared_transactions = '
	  . MANY);

sub client { return PgNetlat::Client->named($node, @_); }

# Waits until this many sessions are known to wait for this process.
sub all_wait_for
{
	my ($count, $pid) = @_;

	return $observer->poll(
		sub {
			$observer->value(
				"SELECT count(*) = $count FROM pgnetlat_sessions WHERE blocked_by = $pid"
			) eq 't';
		});
}

# Waits until this many sessions wait for a lock.
sub all_wait
{
	my ($count) = @_;

	return $observer->poll(
		sub {
			$observer->value(
				"SELECT count(*) = $count FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
			) eq 't';
		});
}

# ---------------------------------------------------------------------------
# Many locks
# ---------------------------------------------------------------------------

my $holder = client('holder');
my @victim = map { client("victim $_") } 1 .. MANY;

$holder->run('BEGIN',
		'SELECT count(pg_advisory_xact_lock(i)) FROM generate_series(1, '
	  . MANY
	  . ') i');
$victim[ $_ - 1 ]->put(query("SELECT pg_advisory_xact_lock($_)"))
  foreach 1 .. MANY;
ok(all_wait_for(MANY, $holder->pid),
	'many locks: each session\'s holder is known');
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT blocked_sessions FROM pgnetlat_blockers
				  WHERE application_name = 'holder' ORDER BY 1 DESC LIMIT 1}) == MANY;
		}),
	"many locks: the holder's row has all waiting sessions");
$holder->run('COMMIT');
$_->responses foreach @victim;

# ---------------------------------------------------------------------------
# A long chain: each waits for the one before, and those at its end began first
# ---------------------------------------------------------------------------

foreach my $i (1 .. MANY)
{
	$victim[ $i - 1 ]->run('BEGIN', "SELECT pg_advisory_xact_lock($i)");
}
foreach my $i (reverse 2 .. MANY)
{
	$victim[ $i - 1 ]
	  ->put(query('SELECT pg_advisory_xact_lock(' . ($i - 1) . ')'));
}
ok( all_wait_for(MANY - 1, $victim[0]->pid),
	'long chain: all wait for the first session');
$victim[0]->run('COMMIT');
foreach my $victim (@victim[ 1 .. MANY - 1 ])
{
	$victim->responses;
	$victim->run('COMMIT');
}

# ---------------------------------------------------------------------------
# Many holders without a process
# ---------------------------------------------------------------------------

# each role that has prepared a transaction is a holder
foreach my $i (1 .. MANY)
{
	$holder->run(
		"CREATE ROLE role_$i",
		"SET SESSION AUTHORIZATION role_$i",
		'BEGIN',
		"SELECT pg_advisory_xact_lock($i)",
		"PREPARE TRANSACTION 'prepared $i'",
		'RESET SESSION AUTHORIZATION');
}
$victim[ $_ - 1 ]->put(query("SELECT pg_advisory_xact_lock($_)"))
  foreach 1 .. MANY;
ok(all_wait_for(MANY, 0),
	'prepared transactions: each session waits for one');
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pgnetlat_blockers
				  WHERE backend_type = 'prepared transaction' AND blocked_sessions = 1
				    AND usename LIKE 'role_%'}
			) == MANY;
		}),
	'prepared transactions: each role has a row');
$holder->run("COMMIT PREPARED 'prepared $_'") foreach 1 .. MANY;
$_->responses foreach @victim;

# ---------------------------------------------------------------------------
# Readers behind ALTER TABLE, and a wait that has nothing to do with them
# ---------------------------------------------------------------------------

my $alter = client('alter');
my $other = client('other');
my @reader = map { client("reader $_") } 1 .. READERS;

$observer->run('CREATE TABLE t ()');
$holder->run('BEGIN', 'TABLE t');
$alter->put(query('ALTER TABLE t ADD COLUMN w int'));
ok(all_wait(1), 'ALTER TABLE: it waits');
$_->put(query('TABLE t')) foreach @reader;
ok(all_wait(READERS + 1), 'ALTER TABLE: the readers wait');
ok( all_wait_for(READERS + 1, $holder->pid),
	'ALTER TABLE: all wait for the idle transaction');

$other->run('BEGIN', 'SELECT pg_advisory_xact_lock(1)');
$victim[0]->put(query('SELECT pg_advisory_xact_lock(1)'));
ok(all_wait(READERS + 2), 'other lock: one more session waits');
my $since = now();
my $cpu_time = $observer->value('SELECT sampler_cpu_time FROM pgnetlat_info');
ok(all_wait_for(1, $other->pid), 'other lock: its holder is known');
my $after = now() - $since;
cmp_ok($after, '<', 10_000, 'other lock: its holder is known within 10 s');
pause(3000);
note(
	sprintf
	  '%d readers: another holder is known after %d ms, the worker takes %.1f %% of a processor',
	READERS, $after,
	100 * (
		$observer->value('SELECT sampler_cpu_time FROM pgnetlat_info') -
		  $cpu_time) / (now() - $since));
$_->run('COMMIT') foreach $holder, $other;
$_->responses foreach $alter, @reader, $victim[0];

no_violations($observer);
$node->stop;
done_testing();
