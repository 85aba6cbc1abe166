
# Copyright (c) 2026, the pgnetlat authors

# Lock waits are booked on their holders, by what the holder was doing and after
# which statement.  The test also knows how long each session has waited: at
# least since it was seen waiting, and at most since its query was sent, to a
# tick.  What is shown is up to some ticks old.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(max);

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# Milliseconds: how far off a wait may be (some ticks of the sampler, which a
# busy machine delays), and how old figures may be while a session waits.
use constant {
	TICK => 150,
	AGE => 400,
};

my $node = new_node('blockers', conf => 'max_prepared_transactions = 2');
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE TABLE t (i int PRIMARY KEY, v int)',
	'INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i');

sub client { return PgNetlat::Client->named($node, @_); }

# Has a client run a query that waits for a lock.  Notes a time before and after
# the wait began.
sub blocked
{
	my ($client, $sql) = @_;

	delete $client->{done_at};
	$client->{asked_at} = now();
	$client->put(query($sql));
	die "$sql does not wait"
	  unless $observer->poll(
		sub {
			$observer->value(
				'SELECT cardinality(pg_blocking_pids(' . $client->pid . '))');
		});
	$client->{waits_since} = now();
	return $client;
}

# Reads the response of a client that waited, and lets the sampler count once
# more.
sub released
{
	my ($client) = @_;

	$client->responses;
	$client->{done_at} = now();
	$observer->await($client->pid, sub { !defined $_->{blocked_by} })
	  or die 'it still waits';
	pause(AGE);
	return;
}

# The waits for an application, over all of its statements, and the times just
# before and after they were read.
sub blocker
{
	my ($name) = @_;
	my $from = now();
	my @rows = $observer->blockers("application_name = '$name'");
	my %sum = (rows => scalar(@rows), read_from => $from, read_to => now());

	foreach my $row (@rows)
	{
		$sum{$_} += $row->{$_}
		  foreach grep { /^blocked_/ && !/_max$/ } keys %$row;
		$sum{$_} = max($row->{$_}, $sum{$_} // 0)
		  foreach grep { /_max$/ } keys %$row;
	}
	return @rows ? \%sum : undef;
}

# Waits until the holder that a session waits for is known.
sub root_of
{
	my ($client) = @_;

	return $observer->poll(
		sub { $observer->account($client->pid)->{blocked_by}; });
}

# The bounds of how long some clients have waited: until a reading, or in all.
sub at_least_waited
{
	my ($reading, @clients) = @_;
	my $sum = 0;

	$sum += $reading->{read_from} - $_->{waits_since} - AGE foreach @clients;
	return $sum;
}

sub at_most_waited
{
	my ($reading, @clients) = @_;
	my $sum = 0;

	$sum += ($_->{done_at} // $reading->{read_to}) - $_->{asked_at} + TICK
	  foreach @clients;
	return $sum;
}

# The identifier of a session's latest statement.
sub queryid_of
{
	my ($client) = @_;

	return $observer->value(
		'SELECT query_id FROM pg_stat_activity WHERE pid = ' . $client->pid);
}

# ---------------------------------------------------------------------------
# A holder that thinks, and two sessions that wait for it, one behind the
# other
# ---------------------------------------------------------------------------

my $holder = client('thinks', tcp => 1);
my @victim = map { client("victim $_") } 1 .. 2;
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1', 'SELECT 1');
$observer->await($holder->pid,
	sub { $_->{state} eq 'waiting in transaction' });
pause(100);
blocked($victim[0], 'UPDATE t SET v = 2 WHERE i = 1');
blocked($victim[1], 'UPDATE t SET v = 3 WHERE i = 1');
is(root_of($_), $holder->pid, 'thinks: each victim waits for the holder')
  foreach @victim;
pause(1000);
my $row = blocker('thinks');
is($row->{rows}, 1, 'thinks: pgnetlat_blockers has one row');
is($row->{blocked_sessions}, 2, 'thinks: two sessions wait');
cmp_ok(
	$row->{blocked_time}, '>=',
	at_least_waited($row, @victim),
	'thinks: blocked_time is not too short');
cmp_ok(
	$row->{blocked_time}, '<=',
	at_most_waited($row, @victim),
	'thinks: blocked_time is not too long');
is($row->{blocked_by_client_time} + $row->{blocked_by_other_time},
	$row->{blocked_time},
	'thinks: blocked_time is client time and other time');
is($row->{blocked_by_other_time}, 0, 'thinks: no blocked_time is other time');
($row) = $observer->blockers("application_name = 'thinks'");
is($row->{usename}, 'postgres', "thinks: the row has the holder's role");
is($row->{client_addr}, '127.0.0.1',
	"thinks: the row has the holder's address");
is( $row->{backend_type},
	'client backend',
	"thinks: the row has the holder's type of process");
is($row->{queryid}, queryid_of($holder),
	"thinks: the row has the holder's query identifier");

my $account = $observer->account($victim[0]->pid);
cmp_ok(
	$account->{exec_lock_time},
	'>=',
	$account->{read_from} - $victim[0]->{waits_since} - TICK,
	'thinks: the victim\'s own lock time is not too short');
cmp_ok(
	$account->{exec_lock_time},
	'<=',
	$account->{read_to} - $victim[0]->{asked_at} + TICK,
	'thinks: the victim\'s own lock time is not too long');
my $sum = blocker('thinks')->{blocked_time};
$account = $observer->account($holder->pid);
cmp_ok($account->{blocking_time},
	'>=', $sum, 'thinks: the holder\'s blocking_time is not too short');
cmp_ok(
	$account->{blocking_time},
	'<=',
	blocker('thinks')->{blocked_time},
	'thinks: the holder\'s blocking_time is not too long');
is($account->{exec_lock_time},
	0, 'thinks: the holder has not waited for locks');
is($account->{blocked_by}, undef, 'thinks: the holder does not wait');

my $holders_queryid = queryid_of($holder);
$holder->run('COMMIT');
released($_) foreach @victim;
is($observer->account($victim[0]->pid)->{blocked_by},
	undef, 'thinks: the victim has stopped waiting');
$row = blocker('thinks');
is($row->{blocked_sessions}, 0, 'thinks: no session waits after COMMIT');
is($row->{blocked_sessions_max}, 2, 'thinks: two sessions have waited');
cmp_ok(
	$row->{blocked_time}, '<=',
	at_most_waited($row, @victim),
	'thinks: blocked_time is not too long after COMMIT');
cmp_ok($row->{blocked_time_max},
	'<=', $row->{blocked_time},
	'thinks: the longest wait is at most the sum');

# the sampler may have seen the COMMIT, which has a row of its own then
($row) = $observer->blockers(
	"application_name = 'thinks' AND queryid = $holders_queryid");
cmp_ok(2 * $row->{blocked_time_max},
	'>=', $row->{blocked_time},
	'thinks: the longest wait is at least half of the sum');

# ---------------------------------------------------------------------------
# A holder that goes on: each statement has its row
# ---------------------------------------------------------------------------

$holder = client('goes on');
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1', 'SELECT 1');
blocked($victim[0], 'UPDATE t SET v = 2 WHERE i = 1');
root_of($victim[0]);
pause(300 + AGE);
my $first = blocker('goes on');
$holder->run('SELECT 2 + 2 AS next');
ok( $observer->poll(sub { blocker('goes on')->{rows} == 2 }),
	'goes on: each statement of the holder has a row');
pause(300 + AGE);
my ($next) = $observer->blockers(
	"application_name = 'goes on' AND queryid = " . queryid_of($holder));
is($next->{blocked_sessions},
	1, 'goes on: the victim counts for the later statement');
cmp_ok($next->{blocked_time}, '>=', 300 - 1,
	'goes on: later time is booked on the later statement');
$holder->run('ROLLBACK');
released($victim[0]);
$row = blocker('goes on');
cmp_ok(
	$row->{blocked_time}, '>=',
	$first->{blocked_time},
	'goes on: earlier time stays booked');
cmp_ok(
	$row->{blocked_time}, '<=',
	at_most_waited($row, $victim[0]),
	'goes on: blocked_time is not too long');

# ---------------------------------------------------------------------------
# Holders that execute, send or receive
# ---------------------------------------------------------------------------

my %by = (
	executes => [ 'exec', 'SELECT pg_sleep(600)', 'executing' ],
	sends => [ 'send', q{SELECT repeat('x', 100000000)}, 'sending' ],
	receives => [ 'recv', 'COPY t FROM STDIN', 'receiving' ]);
foreach my $name (sort keys %by)
{
	my ($part, $sql, $state) = @{ $by{$name} };

	$holder = client($name);
	$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1');
	$holder->put(query($sql));
	$observer->await($holder->pid, sub { $_->{state} eq $state })
	  or die "it is not $state";
	pause(100);
	blocked($victim[0], 'UPDATE t SET v = 2 WHERE i = 1');
	is(root_of($victim[0]),
		$holder->pid, "$name: the victim waits for the holder");
	pause(500);
	my $reading = blocker($name);
	cmp_ok(
		$reading->{blocked_time},
		'>=',
		at_least_waited($reading, $victim[0]),
		"$name: blocked_time is not too short");
	cmp_ok(
		$reading->{blocked_time},
		'<=',
		at_most_waited($reading, $victim[0]),
		"$name: blocked_time is not too long");
	ok( $observer->poll(
			sub {
				$row = blocker($name);
				$row->{"blocked_by_${part}_time"} >=
				  $reading->{blocked_time} * 0.96;
			}),
		"$name: nearly all blocked_time is ${part} time");
	cmp_ok(
		$row->{"blocked_by_${part}_time"} + $row->{blocked_by_other_time},
		'>=',
		$row->{blocked_time} * 0.96,
		"$name: the rest of blocked_time is other time"
	) or note(explain($row));
	is($row->{rows}, 1, "$name: pgnetlat_blockers has one row");

	# it ends while others wait for it
	$observer->run('SELECT pg_terminate_backend(' . $holder->pid . ')');
	released($victim[0]);
	$holder->vanish;
	$observer->ended($name);
	$row = blocker($name);
	is($row->{blocked_sessions},
		0, "$name, holder has ended: no session waits for it");
	cmp_ok(
		$row->{blocked_time}, '>=',
		$reading->{blocked_time},
		"$name, holder has ended: blocked_time is not too short");
	cmp_ok(
		$row->{blocked_time}, '<=',
		at_most_waited($row, $victim[0]),
		"$name, holder has ended: blocked_time is not too long");
}

# ---------------------------------------------------------------------------
# A chain of three sessions, with locks on a relation and on a row; when its
# first one ends, the second one is the holder
# ---------------------------------------------------------------------------

$observer->run('CREATE TABLE r ()');
my $top = client('top');
my $middle = client('middle');
my $bottom = client('bottom');
$top->run('BEGIN', 'LOCK TABLE r');
$middle->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 2');
blocked($middle, 'LOCK TABLE r');
blocked($bottom, 'UPDATE t SET v = 2 WHERE i = 2');
is(root_of($_), $top->pid,
	'a chain: the root is the session that waits for none')
  foreach $middle, $bottom;
pause(300 + AGE);
$row = blocker('top');
is($row->{blocked_sessions}, 2, 'a chain: both wait for the root');
cmp_ok(
	$row->{blocked_time}, '>=',
	at_least_waited($row, $middle, $bottom),
	'a chain: blocked_time of the root is not too short');
cmp_ok(
	$row->{blocked_time}, '<=',
	at_most_waited($row, $middle, $bottom),
	'a chain: blocked_time of the root is not too long');
is(blocker('middle'), undef, 'a chain: a waiting session is not a holder');

my $handed_over = now();
$top->run('COMMIT');
released($middle);
is(root_of($bottom), $middle->pid,
	'a chain: the last session then waits for the middle one');
$top->{done_at} = $bottom->{done_at} = now();
pause(300 + AGE);
my $top_row = blocker('top');
cmp_ok(
	$top_row->{blocked_time},
	'<=',
	at_most_waited($top_row, $middle, $bottom),
	'a chain: no later time is booked on the first session');
is($top_row->{blocked_sessions},
	0, 'a chain: no session waits for the first session any more');
delete $bottom->{done_at};
$row = blocker('middle');
cmp_ok(
	$row->{blocked_time}, '<=',
	$row->{read_to} - $handed_over + TICK,
	'a chain: only later time is booked on the middle session');
cmp_ok($row->{blocked_time}, '>=', 300 - 1,
	'a chain: all later time is booked on the middle session');
$middle->run('COMMIT');
released($bottom);
$row = blocker('middle');
cmp_ok(
	$row->{blocked_time} + $top_row->{blocked_time},
	'<=',
	at_most_waited($row, $middle, $bottom),
	'a chain: no time is booked on both holders');

# ---------------------------------------------------------------------------
# A lock that outlives transactions
# ---------------------------------------------------------------------------

$holder = client('advisory', options => '-c pgnetlat.idle_threshold=0');
$holder->run('SELECT pg_advisory_lock(1)');
blocked($victim[0], 'SELECT pg_advisory_lock_shared(1)');
root_of($victim[0]);
pause(300 + AGE);
$holder->run('SELECT 1 + 1 AS advisory') for 1 .. 3;
ok( $observer->poll(
		sub {
			$row = blocker('advisory');
			$row->{read_from} - $victim[0]->{waits_since} <=
			  $row->{blocked_time} + AGE;
		}),
	'advisory: time between two transactions is booked, too');
cmp_ok(
	$row->{blocked_time}, '<=',
	at_most_waited($row, $victim[0]),
	'advisory: blocked_time is not too long');
cmp_ok($row->{blocked_by_client_time},
	'>=', 300 * 0.96, 'advisory: idle time of the holder is client time');
$holder->run('SELECT pg_advisory_unlock(1)');
released($victim[0]);
$victim[0]->run('SELECT pg_advisory_unlock_shared(1)');

# ---------------------------------------------------------------------------
# Holders without a client
# ---------------------------------------------------------------------------

# Waits for the one row of a type of process on which it waits.
sub row_of_type
{
	my ($type) = @_;
	my $from = now();
	my ($found) = @{
		$observer->poll(
			sub {
				$from = now();
				my @rows = $observer->blockers(
					"backend_type = '$type' AND blocked_sessions > 0");
				return @rows ? \@rows : undef;
			}) // []
	};

	@$found{qw(read_from read_to)} = ($from, now()) if $found;
	return $found;
}

$holder = client('prepares');
$holder->run(
	'BEGIN',
	'UPDATE t SET v = 1 WHERE i = 3',
	q{PREPARE TRANSACTION 'held'});
blocked($victim[0], 'UPDATE t SET v = 2 WHERE i = 3');
ok( $row = row_of_type('prepared transaction'),
	'prepared transaction: pgnetlat_blockers has a row');
is($row->{usename}, 'postgres', 'prepared transaction: the row has its role');
is($row->{datname}, 'postgres',
	'prepared transaction: the row has its database');
is($row->{queryid}, undef,
	'prepared transaction: the row has no query identifier');
cmp_ok(
	$row->{blocked_time}, '<=',
	$row->{read_to} - $victim[0]->{asked_at} + TICK,
	'prepared transaction: blocked_time is not too long');
is($row->{blocked_by_other_time},
	$row->{blocked_time},
	'prepared transaction: all blocked_time is other time');
is($observer->account($victim[0]->pid)->{blocked_by},
	0, 'prepared transaction: blocked_by is 0');
$observer->run(q{COMMIT PREPARED 'held'});
released($victim[0]);

# one that does not go away for others, nor comes to an end
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
$victim[0]->run(q{SET deadlock_timeout = '1h'});
blocked($victim[0], 'BEGIN; LOCK TABLE dead; COMMIT');
ok( $row = row_of_type('autovacuum worker'),
	'autovacuum: pgnetlat_blockers has a row');
is($row->{datname}, 'postgres', 'autovacuum: the row has the database');
is($row->{usename}, undef, 'autovacuum: the row has no role');
is($row->{application_name}, '', 'autovacuum: the row has no application');
cmp_ok(
	$row->{blocked_time}, '<=',
	$row->{read_to} - $victim[0]->{asked_at} + TICK,
	'autovacuum: blocked_time is not too long');
$observer->run(
	'ALTER SYSTEM SET autovacuum = off',
	'SELECT pg_reload_conf()',
	'SELECT pg_terminate_backend('
	  . $observer->account($victim[0]->pid)->{blocked_by} . ')');
released($victim[0]);
$observer->run('DROP TABLE dead');

# ---------------------------------------------------------------------------
# A contended row: many short waits, most of which end before anybody is known
# ---------------------------------------------------------------------------

my $script = $node->basedir . '/contended.sql';

# in one message: no client thinks while it holds the lock
append_to_file($script, <<'EOS');
BEGIN\; UPDATE t SET v = v + 1 WHERE i = 4\; SELECT pg_sleep(0.004)\; COMMIT;
EOS
{
	local $ENV{PGAPPNAME} = 'contended';
	$node->command_ok(
		[ 'pgbench', '-n', '-c', 6, '-t', 100, '-f', $script, 'postgres' ],
		'contention: pgbench updates one row');
}
my $group = $observer->ended('contended', 6);
pause(AGE);
$row = blocker('contended');
note("$row->{blocked_time} ms of $group->{exec_lock_time} in lock waits");
cmp_ok(
	$row->{blocked_time}, '>=',
	$group->{exec_lock_time} * 0.7,
	'contention: most of the waits are booked on a holder');
cmp_ok(
	$row->{blocked_time}, '<=',
	$group->{exec_lock_time} * 1.2,
	'contention: not more than the waits is booked');
cmp_ok(
	$row->{blocked_by_exec_time},
	'>=',
	$row->{blocked_time} * 0.6,
	'contention: most of the time is execution of a holder');

# ---------------------------------------------------------------------------
# A deadlock, which is nobody's fault
# ---------------------------------------------------------------------------

# The last of three looks for it, late enough for the sampler, and is its victim;
# the first goes on waiting for the second.  Until the circle is closed, both wait
# for the last.  On a busy machine the sampler may notice late that it is closed, so
# three of the eight seconds that two sessions spend in it may be booked.
my @circle = map { client('circle') } 1 .. 3;
my $looks_after = 4000;
$_->run(q{SET deadlock_timeout = '1h'}) foreach @circle[ 0, 1 ];
$circle[2]->run("SET deadlock_timeout = '${looks_after}ms'");
$circle[$_]->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = ' . (5 + $_))
  foreach 0 .. 2;
blocked($circle[$_], 'UPDATE t SET v = 2 WHERE i = ' . (6 + $_)) foreach 0, 1;
$circle[2]->put(query('UPDATE t SET v = 2 WHERE i = 5'));
my $closed = now();
ok(!eval { $circle[2]->responses; 1 }, 'deadlock: one session has an error');
$circle[2]->run('ROLLBACK');
$circle[1]->responses;
is( $observer->await($circle[0]->pid,
		sub { ($_->{blocked_by} // 0) == $circle[1]->pid })
	  && 'known',
	'known',
	'deadlock: the first session waits for the second afterwards');
pause(300 + AGE);
$row = blocker('circle');
cmp_ok(
	$row->{blocked_time},
	'<=',
	at_most_waited({ read_to => $closed }, @circle[ 0, 1 ]) +
	  $row->{read_to} -
	  $closed -
	  $looks_after / 4,
	'deadlock: waits inside the circle are not booked on a survivor');
cmp_ok($row->{blocked_time}, '>=', 300 - 1,
	'deadlock: the wait after it is booked');
$circle[1]->run('COMMIT');
$circle[0]->responses;
$circle[0]->run('COMMIT');
$_->finish foreach @circle;

# ---------------------------------------------------------------------------
# A reset
# ---------------------------------------------------------------------------

$holder = client('reset', tcp => 1);
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1');
blocked($victim[0], 'UPDATE t SET v = 2 WHERE i = 1');
root_of($victim[0]);
pause(500 + AGE);
my $before = $observer->account($holder->pid);
cmp_ok($before->{blocking_time},
	'>=', 500 - 1, 'before the reset: the holder has blocking_time');
my $reset = now();
$observer->run('SELECT pgnetlat_reset_session(' . $_->pid . ')')
  foreach $holder, $victim[0];
$account = $observer->account($holder->pid);

# the sampler adds the time since its latest round
cmp_ok(
	$account->{blocking_time},
	'<=',
	$account->{read_to} -
	  $before->{read_from} +
	  max(TICK, $before->{since_visit}),
	'reset of the holder: blocking_time starts from zero');
$account = $observer->account($victim[0]->pid);
cmp_ok(
	$account->{exec_lock_time},
	'<=',
	$account->{read_to} - $reset + TICK,
	'reset of the waiting session: its lock time starts from zero');
is($account->{blocked_by},
	$holder->pid, 'reset of the waiting session: it still waits');
cmp_ok(blocker('reset')->{blocked_time},
	'>=', 500 - 1, 'reset of sessions: pgnetlat_blockers keeps its sum');
$reset = now();
$observer->run('SELECT pgnetlat_reset()');
my $reset_done = now();

foreach my $wait (0, 300)
{
	pause($wait);
	ok( $row = $observer->poll(sub { blocker('reset') }),
		'reset of all: the holder has a row again');
	is($row->{blocked_sessions}, 1, 'reset of all: one session waits');
	cmp_ok(
		$row->{blocked_time}, '<=',
		$row->{read_to} - $reset + TICK,
		'reset of all: blocked_time starts from zero');
	cmp_ok(
		$row->{blocked_time}, '>=',
		$row->{read_from} - $reset_done - AGE,
		'reset of all: blocked_time grows');
	cmp_ok(
		$row->{blocked_by_client_time},
		'>=',
		$row->{blocked_time} - TICK,
		'reset of all: blocked_time is client time') or diag(explain($row));
}
cmp_ok(
	$observer->account($holder->pid)->{blocking_time},
	'<=',
	now() - $reset + TICK,
	'reset of all: the holder\'s blocking_time starts from zero');
is($observer->value('SELECT count(*) FROM pgnetlat_blockers'),
	1, 'reset of all: pgnetlat_blockers has no other row');
$holder->run('COMMIT');
released($victim[0]);

# ---------------------------------------------------------------------------
# A window
# ---------------------------------------------------------------------------

# What others waited for it belongs to the window in which they did, also when
# the holder's row is older than that.
sub in_window
{
	my ($duration, $what) = @_;

	return $observer->value(
		"SELECT $what FROM pgnetlat_blockers_last('$duration')
		  WHERE application_name = 'reset'");
}
my $all = blocker('reset')->{blocked_time};

is(in_window('15 min', 'sum(blocked_time)') - $all,
	0, 'window: from the beginning, it has all');
ok( $observer->poll(
		sub {
			in_window('1 ms', 'sum(blocked_time + blocked_by_client_time)')
			  == 0;
		}),
	'window: a later one has nothing');
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1');
blocked($victim[0], 'UPDATE t SET v = 2 WHERE i = 1');
ok( $observer->poll(
		sub {
			in_window('1 ms',
				'sum(blocked_time) > 0 AND sum(blocked_sessions) = 1') eq 't';
		}),
	'window: it has what others wait now');
cmp_ok(blocker('reset')->{blocked_time},
	'>', $all, 'window: pgnetlat_blockers has both');
$holder->run('COMMIT');
released($victim[0]);

# ---------------------------------------------------------------------------
# Sessions that were quiet, and wait before a hook is called: the sampler does not
# see them at once, but core says when their waits began.
# ---------------------------------------------------------------------------

my @quiet = map { client("parses $_") } 1 .. 4;
my $held = client('holds all');
$held->run('BEGIN', 'LOCK TABLE t');
foreach my $client (@quiet)
{
	# a session is quiet 20 ms after its latest exchange
	$client->run('SELECT 1');
	pause(100);
	blocked($client, 'SELECT FROM t');
}
my $unbooked = <<'EOC';
SELECT (SELECT sum(extract(epoch FROM clock_timestamp() - waitstart)) * 1000 FROM pg_locks WHERE NOT granted)
	   - (SELECT sum(blocked_time) FROM pgnetlat_blockers WHERE application_name = 'holds all')
EOC

# just after the sampler has booked, nothing but the age of its figures is missing
ok( $observer->poll(sub { ($observer->value($unbooked) // 1000) < 100 }),
	'before the hooks: waits are booked from when they began'
) or diag($observer->value($unbooked) . ' ms are missing');
$held->run('COMMIT');
released($_) foreach @quiet;

no_violations($observer);
$node->stop;
done_testing();
