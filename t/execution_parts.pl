
# Copyright (c) 2026, the pgnetlat authors

# The parts of execution: processor, files, locks, standbys, other servers.
# They are sampled, so what is known to take a second must be found, to within a
# few samples.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node(
	'execution',
	init => { allows_streaming => 1 },
	conf => q{synchronous_standby_names = ''});
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE TABLE t AS SELECT 0 AS i',
	q{CREATE FUNCTION compute(seconds float) RETURNS void LANGUAGE plpgsql AS
	  $$ DECLARE ends timestamptz := clock_timestamp() + seconds * interval '1 s';
	  BEGIN WHILE clock_timestamp() < ends LOOP END LOOP; END $$});

my @parts =
  grep { $_ ne 'exec_unsampled_time' } @PgNetlat::Observer::EXEC_PARTS;

# Does a part have nearly all of the execution in "gained"?  If the sampler got
# no processor, some is missing, but not in every attempt.
sub is_most
{
	my ($gained, $part, $milliseconds, $name) = @_;
	my $account;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	for (1 .. 4)
	{
		$account = $gained->();
		last if $account->{$part} >= 0.9 * $milliseconds;
	}
	cmp_ok(
		$account->{$part}, '>=',
		0.9 * $milliseconds,
		"$name: nearly all of it is $part")
	  or diag(
		join(', ',
			map { "$_=$account->{$_}" } 'exec_time',
			@PgNetlat::Observer::EXEC_PARTS));
	return;
}

# Nobody looks while it runs.
sub after
{
	my ($client, @queries) = @_;
	my $before = $observer->settled($client->pid, 0);

	$client->run(@queries);
	return delta($before,
		$observer->settled($client->pid, $before->{requests} + @queries));
}

# ---------------------------------------------------------------------------
# Seen only afterwards
# ---------------------------------------------------------------------------

my $client =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'client');
is_most(sub { after($client, 'SELECT pg_sleep(1)') },
	'exec_other_time', 1000, 'pg_sleep');
is_most(sub { after($client, 'SELECT compute(1)') },
	'exec_cpu_time', 1000, 'a loop');

# ---------------------------------------------------------------------------
# Seen meanwhile, often
# ---------------------------------------------------------------------------

my $before;
is_most(
	sub {
		my $looks = 0;

		$before = $observer->settled($client->pid, 0);
		$client->put(query('SELECT pg_sleep(1)'));
		$observer->poll(
			sub {
				$looks++;
				my $now = $observer->account($client->pid);
				$now->{requests} > $before->{requests};
			});
		$client->responses;
		cmp_ok($looks, '>', 5, 'a session is read while it executes');
		return delta($before,
			$observer->settled($client->pid, $before->{requests} + 1));
	},
	'exec_other_time',
	1000,
	'pg_sleep, read while it executes');

# ---------------------------------------------------------------------------
# Locks: exact while they are waited for
# ---------------------------------------------------------------------------

my $holder = PgNetlat::Client->connect($node, application_name => 'holder');
$holder->run('BEGIN', 'UPDATE t SET i = 1');
$before = $observer->settled($client->pid, 0);
$client->put(query('UPDATE t SET i = 2'));
$observer->poll(
	sub {
		$observer->value(
			'SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart IS NOT NULL AND pid = '
			  . $client->pid);
	});
pause(300);
for (1 .. 5)
{
	pause(50);
	my ($row) = $observer->rows(
		'SELECT s.*, extract(epoch FROM statement_timestamp() - l.waitstart) * 1000 AS waited_at_least,
				extract(epoch FROM clock_timestamp() - a.query_start) * 1000 AS asked_for
		   FROM pg_locks l JOIN pgnetlat_sessions s USING (pid) JOIN pg_stat_activity a USING (pid)
		  WHERE NOT l.granted AND s.pid = ' . $client->pid);
	my $lock = $row->{exec_lock_time} - $before->{exec_lock_time};

	cmp_ok(
		$lock, '>=',
		$row->{waited_at_least} - 25,
		'a lock wait: all of it is seen, to a tick');
	cmp_ok(
		$lock, '<=',
		$row->{asked_for} + 25,
		'a lock wait: not more than it lasted is seen');
}
pause(500);
$holder->run('ROLLBACK');
$client->responses;
my $gain =
  delta($before, $observer->settled($client->pid, $before->{requests} + 1));
is_most(sub { $gain }, 'exec_lock_time', 1000, 'a lock');

# it may be seen while it waits for a lightweight lock of the lock manager
cmp_ok(
	$gain->{exec_other_time} +
	  $gain->{exec_remote_time} +
	  $gain->{exec_replication_time},
	'<=', 50, 'a lock wait: no other part has more than a sample');

# ---------------------------------------------------------------------------
# A standby that does not answer
# ---------------------------------------------------------------------------

sub set
{
	my ($name, $value) = @_;

	$node->adjust_conf('postgresql.conf', $name, $value);
	$node->reload;
	$observer->poll(
		sub { $observer->value("SHOW $name") eq $value =~ s/^'|'$//gr; })
	  or die "$name is not set";
	return;
}

# Something that takes a second, released by a function.
sub released
{
	my ($query, $release) = @_;

	$before = $observer->settled($client->pid, 0);
	$client->put(query($query));
	pause(1000);
	my $meanwhile = delta($before, $observer->account($client->pid));
	$meanwhile->{doing} =
	  $observer->value(
		'SELECT doing FROM pgnetlat_now WHERE pid = ' . $client->pid);
	$release->();
	$client->responses;
	return (
		$meanwhile,
		delta(
			$before, $observer->settled($client->pid, $before->{requests} + 1)
		));
}

# the checkpointer tells all others, when it has read the setting
set('synchronous_standby_names', q{'gone'});
my $probe = PgNetlat::Client->connect($node, application_name => 'probe');
ok( $observer->poll(
		sub {
			my $waits = $observer->value(
				q{SELECT concat(state, ' ', wait_event) FROM pg_stat_activity WHERE pid = }
				  . $probe->pid);

			return $waits eq 'active SyncRep' if $waits =~ /^active/;
			$probe->responses if $probe->{asked};
			$probe->put(query('INSERT INTO t VALUES (4)'));
			$probe->{asked} = 1;
			pause(10);
			return 0;
		}),
	'COMMIT without its standby: a session waits for it');
my ($meanwhile, $afterwards) = released('INSERT INTO t VALUES (3)',
	sub { set('synchronous_standby_names', q{''}); });
is_most(sub { $meanwhile },
	'exec_replication_time', 700, 'COMMIT without its standby, meanwhile');
is_most(sub { $afterwards },
	'exec_replication_time', 800, 'COMMIT without its standby');
like(
	$meanwhile->{doing},
	qr/^waiting for a standby; INSERT/,
	'COMMIT without its standby: pgnetlat_now says so');
$probe->responses;
$probe->finish;

# ---------------------------------------------------------------------------
# Another server
# ---------------------------------------------------------------------------

my $extensions = $observer->value(
	q{SELECT string_agg(name, ' ') FROM pg_available_extensions WHERE name IN ('postgres_fdw', 'dblink')}
);
my $connection =
  sprintf('host=%s port=%s dbname=postgres', $node->host, $node->port);
SKIP:
{
	skip 'postgres_fdw is not installed', 1
	  unless $extensions =~ /postgres_fdw/;
	$observer->run(
		'CREATE EXTENSION postgres_fdw',
		sprintf(
			q{CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres')},
			$node->host, $node->port),
		'CREATE USER MAPPING FOR CURRENT_USER SERVER other',
		'CREATE VIEW slow AS SELECT pg_sleep(1)::text AS nothing',
		q{CREATE FOREIGN TABLE slow_there (nothing text) SERVER other OPTIONS (table_name 'slow')}
	);
	is_most(sub { after($client, 'SELECT * FROM slow_there') },
		'exec_remote_time', 1000, 'postgres_fdw');
}
SKIP:
{
	skip 'dblink is not installed, or has no wait event', 1
	  unless $extensions =~ /dblink/ && $node->pg_version >= 17;
	$observer->run('CREATE EXTENSION dblink');
	is_most(
		sub {
			after($client,
				"SELECT * FROM dblink('$connection', 'SELECT pg_sleep(1)::text') d(x text)"
			);
		},
		'exec_remote_time',
		1000,
		'dblink');
}

# ---------------------------------------------------------------------------
# Statements
# ---------------------------------------------------------------------------

# A statement that has ended has its parts some ticks later.
my $some_ticks = 100;

# The parts of a statement that a session runs, when it has run another one.
sub statement_of
{
	my ($client, $query) = @_;
	my $old = statement_row($client, $query);

	# its record is complete when the wait after it is over
	$client->run($query, 'SELECT 1');
	$observer->settled($client->pid, 0);
	pause($some_ticks);
	my $new = statement_row($client, $query);

	return {
		map { $_ => $new->{$_} - ($old->{$_} // 0) } 'exec_time',
		@PgNetlat::Observer::EXEC_PARTS
	};
}

my %queryid;

sub statement_row
{
	my ($client, $query) = @_;

	unless ($queryid{$query})
	{
		$queryid{$query} = 0;
		foreach my $row ($client->rows("EXPLAIN (VERBOSE) $query"))
		{
			$queryid{$query} = $1
			  if $row->{'QUERY PLAN'} =~ /Query Identifier: (-?\d+)/;
		}
	}
	my ($row) = statements("queryid = $queryid{$query}");
	return $row // {};
}

# Rows of pgnetlat_statements, checked.
my %seen;

sub statements
{
	my ($condition) = @_;
	my @rows =
	  $observer->rows("SELECT * FROM pgnetlat_statements WHERE $condition");

	foreach my $row (@rows)
	{
		my $key = join(' ',
			map { $_ // 'NULL' } @$row{qw(userid dbid queryid stats_since)});
		my $sum = 0;

		$sum += $row->{$_} foreach @PgNetlat::Observer::EXEC_PARTS;
		$observer->_complain($row,
			"statement: exec_time is $row->{exec_time}, its parts $sum")
		  if abs($sum - $row->{exec_time}) > 1e-6;
		foreach my $part (@PgNetlat::Observer::EXEC_PARTS)
		{
			$observer->_complain($row,
				"statement: $part fell to $row->{$part}")
			  if $part ne 'exec_unsampled_time'
			  and $row->{$part} < ($seen{$key}{$part} // 0) - 1e-9;
		}
		$seen{$key} = $row;
	}
	return @rows;
}

is_most(sub { statement_of($client, 'SELECT pg_sleep(1.0)') },
	'exec_other_time', 1000, 'statement: pg_sleep');
is_most(sub { statement_of($client, 'SELECT compute(1.0)') },
	'exec_cpu_time', 1000, 'statement: a loop');

# samples are booked on the statement even if it is read all the time
my $sleep;
is_most(
	sub {
		my $requests = $observer->account($client->pid)->{requests};

		$sleep = statement_row($client, 'SELECT pg_sleep(1.0)');
		$client->put(query('SELECT pg_sleep(1.0)'));
		$observer->poll(
			sub { $observer->account($client->pid)->{requests} > $requests })
		  or die 'it goes on sleeping';
		$client->responses;
		$client->run('SELECT 1');
		$observer->settled($client->pid, 0);
		pause($some_ticks);
		return delta($sleep, statement_row($client, 'SELECT pg_sleep(1.0)'));
	},
	'exec_other_time',
	1000,
	'statement: pg_sleep, read all the time');

# several in one exchange, each with what was sampled of it
$sleep = statement_row($client, 'SELECT pg_sleep(1.0)');
my $loop = statement_row($client, 'SELECT compute(1.0)');
$client->run('SELECT pg_sleep(0.7); SELECT compute(0.7)', 'SELECT 1');
my $loop_after;
ok( $observer->poll(
		sub {
			statement_row($client, 'SELECT pg_sleep(1.0)')->{exec_other_time}
			  - $sleep->{exec_other_time} >= 0.8 * 700;
		}),
	'two in one exchange: the first one slept');
ok( $observer->poll(
		sub {
			$loop_after = statement_row($client, 'SELECT compute(1.0)');
			$loop_after->{exec_cpu_time} - $loop->{exec_cpu_time} >=
			  0.8 * 700;
		}),
	'two in one exchange: the second one computed');
cmp_ok($loop_after->{exec_other_time} - $loop->{exec_other_time},
	'<=', 0.3 * 700, 'two in one exchange: the second one did not sleep');

# ---------------------------------------------------------------------------
# A statement in progress counts by the second
# ---------------------------------------------------------------------------

my $long = 'SELECT compute(4.0)';
my $old = statement_row($client, $long);
my @so_far;

$client->put(query($long));
foreach my $least (500, 1500)
{
	ok( $observer->poll(
			sub {
				my $row = statement_row($client, $long);

				$row->{exec_time} -= $old->{exec_time} // 0;
				return 0 if $row->{exec_time} < $least;
				push @so_far, $row;
			}),
		"a statement in progress: exec_time reaches $least ms");
}
cmp_ok(
	$so_far[1]{exec_time},
	'>',
	$so_far[0]{exec_time},
	'a statement in progress: exec_time grows');
is( $so_far[1]{calls},
	$old->{calls} // 0,
	'a statement in progress: it is no call yet');
cmp_ok(
	$so_far[1]{exec_time},
	'<=',
	$observer->value(
		'SELECT extract(epoch FROM clock_timestamp() - query_start) * 1000 FROM pg_stat_activity WHERE pid = '
		  . $client->pid),
	'a statement in progress: exec_time is not too long');
$client->responses;
$client->run('SELECT 1');
$observer->settled($client->pid, 0);
my $ended = statement_row($client, $long);
my $recorded = $observer->value(
	sprintf(
		'SELECT exec_time FROM pgnetlat_recent(%d) WHERE queryid = %s ORDER BY start DESC LIMIT 1',
		$client->pid, $queryid{$long}));
is( $ended->{calls},
	($old->{calls} // 0) + 1,
	'a statement that ends: it is one call');
cmp_ok(abs($ended->{exec_time} - ($old->{exec_time} // 0) - $recorded),
	'<', 1e-3, 'a statement that ends: its execution is counted once')
  or diag("$ended->{exec_time} - $old->{exec_time}, not $recorded");

# a statement that never completes, and one that ends with its session
foreach my $end ('cancel', 'terminate')
{
	my $victim = PgNetlat::Client->connect($node, application_name => $end);
	my $before = statement_row($client, $long);

	$victim->put(query($long));
	ok( $observer->poll(
			sub {
				statement_row($client, $long)->{exec_time} >
				  $before->{exec_time} + 500;
			}),
		"$end: the statement in progress has exec_time");
	$observer->run("SELECT pg_${end}_backend(" . $victim->pid . ')');
	$end eq 'cancel' ? $victim->until('Z') : $victim->until_closed;
	$victim->finish if $end eq 'cancel';
	my $sum = $observer->ended($end);
	my $after = statement_row($client, $long);
	my $gained = $after->{exec_time} - $before->{exec_time};

	is($after->{calls}, $before->{calls},
		"$end: the statement is not a call");
	cmp_ok(
		$gained, '<=',
		$sum->{exec_time} + 1e-3,
		"$end: its execution is not counted twice");
	cmp_ok($gained, '>', 500, "$end: its execution is not lost");
}

# ---------------------------------------------------------------------------
# Two that want one processor
# ---------------------------------------------------------------------------

SKIP:
{
	my @rivals =
	  map { PgNetlat::Client->connect($node, application_name => 'rival') }
	  1 .. 2;

	foreach my $rival (@rivals)
	{
		$rival->run('SELECT 1');
		skip 'processes cannot be bound to a processor', 1
		  unless run_log([ 'taskset', '-cp', '0', $rival->pid ]);
	}
	skip 'the kernel does not report run queues', 1
	  unless defined $observer->account($rivals[0]->pid)->{run_queue_time};
	my %first = map { $_->pid => $observer->account($_->pid) } @rivals;

	# which spills to a file, so that its wait event changes all the time
	$_->put(query('SELECT count(*) FROM generate_series(1, 2000000000)'))
	  foreach @rivals;
	foreach my $rival (@rivals)
	{
		my $began = $first{ $rival->pid };
		my $seen = $observer->await(
			$rival->pid,
			sub {
				$_->{run_queue_time} - $began->{run_queue_time} > 300;
			});

		ok($seen, 'a session without a processor is seen waiting for one')
		  or next;
		is($seen->{state}, 'executing',
			'run_queue_time grows during execution');
		cmp_ok(
			$seen->{run_queue_time} - $began->{run_queue_time},
			'<=',
			$seen->{total_time} - $began->{total_time},
			'run_queue_time is at most total_time');
	}
	my ($window) =
	  $observer->clients_window('1 s', q{application_name = 'rival'});
	cmp_ok($window->{run_queue_time},
		'<=', $window->{total_time},
		'run_queue_time of a window is at most its total_time');

	my $uncounted = PgNetlat::Client->connect($node);

	$uncounted->run('SET pgnetlat.enabled = off');
	run_log([ 'taskset', '-cp', '0', $uncounted->pid ]);
	$uncounted->run(
		'SELECT count(*) FROM generate_series(1, 500000)',
		'SET pgnetlat.enabled = on',
		'SELECT 1');
	my $account = $observer->account($uncounted->pid);
	cmp_ok(
		$account->{run_queue_time},
		'<=',
		$account->{total_time},
		'what was not counted is not in run_queue_time');
	$uncounted->finish;

	$_->cancel     foreach @rivals;
	$_->until('Z') foreach @rivals;
	$_->finish     foreach @rivals;
	($window) =
	  $observer->clients_window('1 s', q{application_name = 'rival'});
	cmp_ok($window->{run_queue_time},
		'<=', $window->{total_time},
		'run_queue_time of ended sessions is at most total_time');
}

# ---------------------------------------------------------------------------
# A lock that is waited for while a query is analyzed
# ---------------------------------------------------------------------------

$holder->run('BEGIN', 'LOCK t');
is_most(
	sub {
		my $before = $observer->settled($client->pid, 0);

		$client->put(query('SELECT * FROM t'));
		pause(1000);
		$holder->run('COMMIT');
		$client->responses;
		my $gained = delta($before,
			$observer->settled($client->pid, $before->{requests} + 1));
		$holder->run('BEGIN', 'LOCK t');
		return $gained;
	},
	'exec_lock_time',
	1000,
	'a lock in parse analysis');
$holder->run('COMMIT');

# A statement without a record: its samples are not those of the next one.
my $next = 'SELECT count(*) FROM generate_series(1, 4000)';
$client->run('SET pgnetlat.track_statements = off');
$before = $observer->settled($client->pid, 0);
$holder->run('BEGIN', 'LOCK t');
$client->put(query('SELECT * FROM t'));
pause(500);
$holder->run('COMMIT');
$client->responses;
my $untracked =
  delta($before, $observer->settled($client->pid, $before->{requests} + 1));
$client->run('SET pgnetlat.track_statements = on', ($next) x 500);
pause(500);
is( statement_row($client, $next)->{exec_lock_time},
	0,
	'a lock wait before track_statements is on is not of the next statement');

# ---------------------------------------------------------------------------
# Sums
# ---------------------------------------------------------------------------

# Many short ones, which a sample stands for in proportion.
$before = $observer->settled($client->pid, 0);
my $short = 0;
my $until = now() + 2000;
while (now() < $until)
{
	$client->run('SELECT compute(0.002)');
	$short++;
}
$gain = delta($before,
	$observer->settled($client->pid, $before->{requests} + $short));
cmp_ok(
	$gain->{exec_cpu_time},
	'>=',
	0.6 * $gain->{exec_time},
	'most time of many short executions is CPU time'
) or diag("$gain->{exec_cpu_time} of $gain->{exec_time}");

# A group is the sum of its sessions, and statements have what sessions have; but what a
# late worker sees of a part when its execution has been added to the group is unsampled
# there, and stays so.
my $account = $observer->settled($client->pid, 0);
my $group = $observer->client('client');
foreach (@parts)
{
	cmp_ok(
		$group->{$_}, '<=',
		$account->{$_} + 25,
		"group: not more $_ than the session had");
	cmp_ok(
		$group->{$_}, '>=',
		0.9 * $account->{$_} - 100,
		"group: nearly all $_ of the session");
}
$client->finish;
$holder->finish;
$observer->ended($_) foreach qw(client holder);
$group = $observer->client('client');
my %sessions;
my %statements;

foreach my $row ($observer->clients(q{application_name <> 'observer'}))
{
	$sessions{$_} += $row->{$_} foreach @parts;
}

# the short ones as well, which wait for a quarter of a second
pause(500);
foreach my $row (statements('true'))
{
	$statements{$_} += $row->{$_} foreach @parts, 'exec_time';
}
foreach my $part (@parts)
{
	my $sum = $sessions{$part} - $untracked->{$part};

	cmp_ok(
		$statements{$part}, '<=',
		1.1 * $sum + 100,
		"statements: hardly more $part than sessions had");
	cmp_ok(
		$statements{$part}, '>=',
		0.8 * $sum - 100,
		"statements: nearly all $part of the sessions");
}
my ($history) = $observer->rows(
	'SELECT '
	  . join(', ',
		map { "sum($_) AS $_" } 'exec_time',
		@PgNetlat::Observer::EXEC_PARTS)
	  . q{, bool_and(abs(}
	  . join(' + ', @PgNetlat::Observer::EXEC_PARTS)
	  . q{ - exec_time) < 1e-6) AS exact FROM pgnetlat_history WHERE datname = 'postgres'}
);
is($history->{exact}, 't', 'history: parts add up in each interval');
cmp_ok(
	$history->{$_}, '>=',
	0.95 * $group->{$_} - 20,
	"history: nearly all $_ of the group") foreach @parts;

# windows, of which each is checked
foreach my $duration ('1 us', '1 s', '10 s', '15 min')
{
	my ($row) =
	  $observer->clients_window($duration, q{application_name = 'client'});

	ok(defined $row, "a window of $duration has a row");
}

# ---------------------------------------------------------------------------
# What is saved, and what is forgotten
# ---------------------------------------------------------------------------

no_violations($observer);
$observer->finish;
$node->restart;
$observer = PgNetlat::Observer->connect($node);
my $saved = $observer->client('client');
is($saved->{$_}, $group->{$_}, "restart: $_ of the group is kept")
  foreach @parts;
is( sprintf(
		'%.3f',
		$observer->value(
			"SELECT sum(exec_other_time) FROM pgnetlat_statements")),
	sprintf('%.3f', $statements{exec_other_time}),
	'restart: exec_other_time of statements is kept');

$client =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'client');

# Samples that are not in the statement's entry yet.
my $forgotten = 0;
foreach (1 .. 10)
{
	$client->run(('SELECT pg_sleep(0.015)') x 3, 'SELECT pgnetlat_reset()');
	pause(300);
	$forgotten++ unless statements('calls = 0');
}
is($forgotten, 10, 'a reset after a statement: it has no row');

$client->put(query('SELECT pg_sleep(600)'));
$observer->await($client->pid, sub { $_->{exec_other_time} > 100 });
$observer->run('SELECT pgnetlat_reset()');
$account = $observer->account($client->pid);
cmp_ok($account->{exec_other_time},
	'<=', $account->{exec_time},
	'a reset while it executes: no part exceeds exec_time');
ok($observer->await($client->pid, sub { $_->{exec_other_time} > 100 }),
	'a reset while it executes: it is still sampled');
$observer->run('SELECT pgnetlat_reset_session(' . $client->pid . ')');
$account = $observer->account($client->pid);
cmp_ok($account->{exec_other_time},
	'<=', $account->{exec_time},
	'a reset of its session: no part exceeds exec_time');
ok( $observer->await(
		$client->pid,
		sub {
			$_->{exec_other_time} > 100
			  && $_->{exec_other_time} > 0.9 * $_->{exec_time};
		}),
	'a reset of its session: its parts begin from zero');
$observer->window($_, $client->pid) foreach '1 us', '1 s', '15 min';
$client->cancel;

# ---------------------------------------------------------------------------
# What the kernel has counted before a reset does not count
# ---------------------------------------------------------------------------

# Milliseconds for which a process was ready to run, but not running.
sub kernel_run_queue
{
	my ($pid) = @_;

	return (split ' ', slurp_file("/proc/$pid/schedstat"))[1] / 1e6;
}

SKIP:
{
	my @rivals =
	  map { PgNetlat::Client->connect($node, application_name => 'rival') }
	  1 .. 2;

	foreach my $rival (@rivals)
	{
		skip 'processes cannot be bound to a processor', 1
		  unless run_log([ 'taskset', '-cp', '0', $rival->pid ]);
	}
	skip 'the kernel does not report run queues', 1
	  unless -r '/proc/self/schedstat';
	$_->put(query('SELECT compute(1000)')) foreach @rivals;
	$observer->await($_->pid, sub { $_->{run_queue_time} > 1500; })
	  foreach @rivals;
	my %before = map { $_ => kernel_run_queue($_->pid) } @rivals;

	$observer->run('SELECT pgnetlat_reset()');
	foreach my $rival (@rivals)
	{
		my $seen =
		  $observer->await($rival->pid, sub { $_->{run_queue_time} > 0; });

		ok($seen, 'after a reset, run_queue_time grows again') or next;
		cmp_ok(
			$seen->{run_queue_time},
			'<=',
			kernel_run_queue($rival->pid) - $before{$rival},
			"after a reset, run_queue_time is at most the kernel's");
	}
	$_->cancel foreach @rivals;
	$_->until('Z') foreach @rivals;
	foreach my $rival (@rivals)
	{
		$rival->run('SELECT 1');
		cmp_ok(
			$observer->account($rival->pid)->{run_queue_time},
			'<=',
			kernel_run_queue($rival->pid) - $before{$rival},
			"after the statement, run_queue_time is at most the kernel's");
	}
	$_->finish foreach @rivals;
}

no_violations($observer);
$node->stop;
done_testing();
