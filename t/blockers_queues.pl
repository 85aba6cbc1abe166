
# Copyright (c) 2026, the pgnetlat authors

# The root of each session's chain of lock waits, in queues for random locks
# (rows, a table, advisory locks, lock upgrades, prepared transactions): it must
# be reachable through pg_blocking_pids(), and must not wait itself.  Also
# readers behind an ALTER TABLE that waits for an idle transaction.

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
	SEED => 26,
	QUEUES => 8,
	CLIENTS => 24,
	STEPS => 60,
	MOST_PREPARED => 6,
};

my ($node, $observer) = start_node('queues',
	conf => 'max_prepared_transactions = ' . MOST_PREPARED . <<'EOC');

deadlock_timeout = 20ms
EOC
my @modes = (
	'ACCESS SHARE',
	'ROW SHARE',
	'ROW EXCLUSIVE',
	'SHARE UPDATE EXCLUSIVE',
	'SHARE',
	'SHARE ROW EXCLUSIVE',
	'EXCLUSIVE',
	'ACCESS EXCLUSIVE');
my @rows = ('UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE');
my $prepared = 0;

$observer->run('CREATE TABLE t (i int PRIMARY KEY, v int)',
	'INSERT INTO t SELECT i, 0 FROM generate_series(1, 6) i');
srand(SEED);

sub any { return $_[ int rand @_ ]; }

sub random_statement
{
	my $kind = int rand 100;
	my $i = 1 + int rand 4;

	return 'LOCK TABLE t IN ' . any(@modes) . ' MODE' if $kind < 20;
	return "SELECT v FROM t WHERE i = $i FOR " . any(@rows) if $kind < 50;
	return "UPDATE t SET v = v + 1 WHERE i = $i" if $kind < 65;
	return "SELECT pg_advisory_xact_lock" . any('', '_shared') . "($i)"
	  if $kind < 85;
	if ($kind < 90 && $prepared < MOST_PREPARED)
	{
		$prepared++;
		return "PREPARE TRANSACTION 'p$prepared'";
	}
	return 'COMMIT' if $kind < 95;
	return "SELECT pg_advisory_lock($i)";
}

# Sends a statement that can be told from the session's statement before.
my $asked = 0;

sub ask
{
	my ($client, $sql) = @_;

	$client->{asked} = '/* ' . ++$asked . ' */';
	$client->put(query("$sql $client->{asked}"));
	return;
}

# Until the session waits for a lock, or has responded; true if it waits.
sub waits
{
	my ($client) = @_;
	my $state = $observer->poll(
		sub {
			$observer->value(
				q{SELECT CASE WHEN cardinality(pg_blocking_pids(pid)) > 0 THEN 'waits'
				              WHEN state LIKE 'idle%' THEN 'done' END
				  FROM pg_stat_activity WHERE query LIKE '%}
				  . "$client->{asked}' AND pid = " . $client->pid);
		}) // die 'the session neither waits nor responds';

	return $state eq 'waits';
}

# The next statement of a session that waits for nothing; in no transaction that has
# failed.
sub take_step
{
	my ($client) = @_;

	if (delete $client->{asked})
	{
		$client->until('Z');
		$client->run('ROLLBACK') if $client->error_of('SAVEPOINT s');
		$client->run('BEGIN');
	}
	ask($client, random_statement());
	return;
}

sub make_queue
{
	my @client = @_;

	foreach (1 .. STEPS)
	{
		my @free = grep { !$_->{asked} || !waits($_) } @client;
		my $client = any(@free) or last;

		take_step($client);
		waits($client);
	}
	return;
}

# For whom each session waits directly, and the root that is shown.
sub edges
{
	return $observer->rows(
		q{SELECT s.pid, s.blocked_by, array_to_string(pg_blocking_pids(s.pid), ' ') AS blockers
		  FROM pgnetlat_sessions s
		  WHERE cardinality(pg_blocking_pids(s.pid)) > 0});
}

# What is wrong with these roots; '' if nothing.
sub wrong_edges
{
	my %edge = map { $_->{pid} => $_ } @_;
	my @wrong;

	foreach my $edge (values %edge)
	{
		my %reached;
		my @next = split / /, $edge->{blockers};

		while (defined(my $pid = shift @next))
		{
			next if $reached{$pid}++;
			push @next, split / /, $edge{$pid}{blockers} if $edge{$pid};
		}
		push @wrong, "$edge->{pid} by " . ($edge->{blocked_by} // 'nobody')
		  if !defined $edge->{blocked_by}
		  or !$reached{ $edge->{blocked_by} }
		  or $edge{ $edge->{blocked_by} };
	}
	return join(', ', @wrong);
}

foreach my $queue (1 .. QUEUES)
{
	my @client = map {
		PgNetlat::Client->connect($node, application_name => "client $_")
	} 1 .. CLIENTS;
	my @edges;

	$_->run('BEGIN') foreach @client;
	make_queue(@client);
	ok( $observer->poll(
			sub {
				@edges = edges();
				return wrong_edges(@edges) eq '';
			}),
		"queue $queue: every root is correct"
	) or diag(wrong_edges(@edges), explain(\@edges));
	cmp_ok(scalar(@edges), '>=', 5,
		"queue $queue: at least five sessions wait");
	note(scalar(@edges) . ' sessions wait');
	$observer->run(
		q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		  WHERE application_name LIKE 'client %'});
	$_->vanish foreach @client;
	$observer->run("ROLLBACK PREPARED '$_->{gid}'")
	  foreach $observer->rows('SELECT gid FROM pg_prepared_xacts');
	$observer->poll(
		sub {
			!$observer->value(
				q{SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'client %'}
			);
		});
	$prepared = 0;
}

# ---------------------------------------------------------------------------
# An idle transaction, ALTER TABLE, and readers
# ---------------------------------------------------------------------------

my ($holder, $alter, @reader) =
  map { PgNetlat::Client->connect($node, application_name => $_) }
  ('idle', 'alter', map { "reader $_" } 1 .. 5);

$observer->run('SELECT pgnetlat_reset()');
$holder->run('BEGIN', 'SELECT count(*) FROM t');
ask($alter, 'ALTER TABLE t ADD COLUMN w int');
waits($alter) or die 'ALTER TABLE does not wait';
ask($_, 'SELECT count(*) FROM t') foreach @reader;
waits($_) foreach @reader;
my $since = now();
foreach my $client ($alter, @reader)
{
	is( $observer->await($client->pid, sub { defined $_->{blocked_by} })
		  ->{blocked_by},
		$holder->pid,
		'ALTER TABLE or reader behind it waits for the idle transaction');
}
pause(2000);
my $waited = @reader * (now() - $since);
my ($row) = $observer->blockers(q{blocked_time > 0});
is($row->{application_name},
	'idle', 'ALTER TABLE: pgnetlat_blockers has the idle transaction');
is( $row->{blocked_sessions},
	1 + @reader,
	'ALTER TABLE: all waiting sessions count for the idle transaction');
cmp_ok(
	$row->{blocked_time}, '>=',
	$waited * 0.8,
	'ALTER TABLE: all blocked_time is booked on the idle transaction');
cmp_ok(
	$row->{blocked_by_client_time},
	'>=',
	$row->{blocked_time} * 0.95,
	'ALTER TABLE: nearly all blocked_time is client time');
is(scalar($observer->blockers(q{blocked_time > 0})),
	1, 'ALTER TABLE: pgnetlat_blockers has no other holder');
$holder->run('COMMIT');
$_->responses foreach $alter, @reader;

no_violations($observer);
$node->stop;
done_testing();
