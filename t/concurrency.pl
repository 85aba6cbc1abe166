
# Copyright (c) 2026, the pgnetlat authors

# Concurrency: sessions that come and go while all views are read, sessions that
# are terminated, and resets, DROP EXTENSION, switching off and on and a crash
# under load, with every connection in use.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(setitimer ITIMER_REAL);

# How long each part goes on, in seconds; more finds more.
my $duration = $ENV{PGNETLAT_TEST_DURATION} // 6;

my ($node, $observer) = start_node('concurrency', conf => <<'EOC');
pgnetlat.idle_threshold = '20ms'
pgnetlat.recorder_size = 16
pgnetlat.history_interval = 1
restart_after_crash = on
EOC
$observer->run(
	'CREATE TABLE counters AS SELECT g AS id, 0 AS n FROM generate_series(1, 10) g'
);

my @views = qw(pgnetlat_sessions pgnetlat_waits pgnetlat_statements
  pgnetlat_clients pgnetlat_histogram pgnetlat_history pgnetlat_top_statements
  pgnetlat_info);

# Runs a function in processes of their own, with the number of each, until
# it is over; what it returns goes to the parent as text.
sub spawn
{
	my ($count, $function) = @_;
	my @children;

	foreach my $number (1 .. $count)
	{
		pipe(my $from_child, my $to_parent) or die "pipe: $!";
		my $pid = fork() // die "fork: $!";
		if ($pid == 0)
		{
			my $result = eval { $function->($number) };
			syswrite($to_parent, defined $result ? "ok $result" : "died: $@");

			# not exit(): the parent's servers would be stopped
			POSIX::_exit(0);
		}
		close $to_parent;
		push @children, { pid => $pid, from => $from_child };
	}
	return @children;
}

# Waits for them; the results, each of which must begin with "ok".
sub reap
{
	my ($name, @children) = @_;
	my @results;

	foreach my $child (@children)
	{
		my $text = do { local $/; my $in = $child->{from}; <$in> };
		waitpid($child->{pid}, 0);
		push @results, $text;
	}
	is(join('', grep { !/^ok / } @results), '', "$name: no process failed");
	return map { /^ok (.*)$/s ? $1 : () } @results;
}

# Reads all views in turn until a time.
sub read_views
{
	my ($until) = @_;
	my $reader =
	  PgNetlat::Observer->connect($node, application_name => 'reader');
	my $rounds = 0;

	while (now() < $until)
	{
		$reader->rows("SELECT * FROM $_") foreach @views;
		$reader->rows(
			'SELECT r.* FROM pgnetlat_sessions s, pgnetlat_recent(s.pid) r');
		$reader->accounts;
		$reader->clients;
		$rounds++;
	}
	die $reader->violations if $reader->violations ne '';
	$reader->finish;
	return $rounds;
}

# ---------------------------------------------------------------------------
# Sessions that come and go
# ---------------------------------------------------------------------------

# Each of five processes keeps ten connections, and replaces one of them in
# each round by a new one.  Returns what must have been counted.
sub churn
{
	my ($until) = @_;
	my @sessions;
	my ($sessions, $requests) = (0, 0);

	while (now() < $until)
	{
		my $place = int(rand(10));
		my $client = $sessions[$place];

		$client->finish if $client;
		$client = $sessions[$place] = PgNetlat::Client->connect(
			$node,
			application_name => 'churn',
			tcp => rand() < 0.5);
		$sessions++;
		my @statements =
		  ('SELECT 1', 'BEGIN', 'SELECT 2', 'COMMIT', 'SELECT 3');
		splice(@statements, rand(@statements + 1));
		$client->run(@statements);
		$requests += @statements;

		if (rand() < 0.3)
		{
			$client->put(query('SELECT 1') x 20);
			$client->responses(20);
			$requests += 20;
		}
	}
	$_->finish foreach grep { $_ } @sessions;
	return "$sessions $requests";
}

my $until = now() + $duration * 1000;
my @readers = spawn(2, sub { read_views($until) });
my @churners = spawn(5, sub { srand($_[0]); churn($until) });
my ($sessions, $requests) = (0, 0);

foreach (reap('sessions that come and go', @churners))
{
	my @counts = split / /;
	$sessions += $counts[0];
	$requests += $counts[1];
}
cmp_ok($sessions, '>=', 50, 'sessions came and went');
cmp_ok($_, '>=', 1, 'views were read while sessions came and went')
  foreach reap('readers', @readers);

my $sum = $observer->ended('churn', $sessions);
ok($sum, 'all sessions that came and went have ended');
is($sum->{ended_sessions},
	$sessions, 'every session that came and went was counted');
is($sum->{sessions}, 0, 'no session that came and went is still live');
is($sum->{requests}, $requests,
	'every request of sessions that came and went was counted');
is($sum->{statements}, $requests,
	'every statement of sessions that came and went was counted');

# ---------------------------------------------------------------------------
# A row of pgnetlat_clients is of one moment
# ---------------------------------------------------------------------------

# Reads pgnetlat_clients as often as possible, and checks that nothing falls.  A
# session that leaves meanwhile must be counted either as a live or as an ended
# session, and its pending time once.
sub watch_groups
{
	my ($until) = @_;
	my $watcher =
	  PgNetlat::Observer->connect($node, application_name => 'group watcher');
	my ($looks, @falls) = (0);
	my %last;

	while (now() < $until or $looks < 100)
	{
		foreach my $row ($watcher->clients(q{application_name = 'passing'}))
		{
			my $key = "$row->{client_addr} $row->{stats_since}";
			my $old = $last{$key};

			$row->{all_sessions} = $row->{sessions} + $row->{ended_sessions};
			push @falls,
			  "sessions fell from $old->{all_sessions} to $row->{all_sessions}"
			  if $old and $row->{all_sessions} < $old->{all_sessions};
			$last{$key} = $row;
		}
		$looks++;
	}
	my $violations =
	  join("\n", grep { $_ ne '' } $watcher->violations, @falls);
	die "in $looks looks: $violations\n" if $violations ne '';
	$watcher->finish;
	return $looks;
}

# A few sessions at a time, so that time counted twice is not made up for
# before the next look.
$until = now() + $duration * 1000;
my @watchers = spawn(2, sub { watch_groups($until) });
my @workers = spawn(
	4,
	sub {
		my ($number) = @_;
		my $ended = 0;

		srand($number);
		while (now() < $until)
		{
			my $client = PgNetlat::Client->connect(
				$node,
				application_name => 'passing',
				tcp => 1,
				options => '-c pgnetlat.idle_threshold=1h');

			$client->run('SELECT 1');
			pause(rand(60));
			$client->run('SELECT 1') if rand() < 0.5;
			pause(rand(60));
			$client->finish;
			$ended++;
		}
		return $ended;
	});
my $passed = 0;
$passed += $_ foreach reap('sessions that pass by', @workers);
cmp_ok($_, '>=', 100, 'clients were read while sessions passed by')
  foreach reap('watchers of groups', @watchers);
is($observer->ended('passing', $passed)->{ended_sessions},
	$passed, 'every session that passed by was counted');

# ---------------------------------------------------------------------------
# Waits for our own locks are visible
# ---------------------------------------------------------------------------

# A reader is stopped at random moments, so that it sometimes holds a lock.  In
# case that is one of core's, it resumes by itself after a while.
my $reader = PgNetlat::Client->connect($node, application_name => 'stopped');
my $blocked = PgNetlat::Client->connect($node, application_name => 'blocked');
my $waits_for =
	"SELECT wait_event FROM pg_stat_activity WHERE pid = "
  . $blocked->pid
  . " AND wait_event_type = 'LWLock'";
$reader->put(
	query(
		q{DO 'BEGIN LOOP PERFORM count(*) FROM pgnetlat_clients(); END LOOP; END'}
	));
my $lock = $observer->poll(
	sub {
		local $SIG{ALRM} = sub { kill 'CONT', $reader->pid };
		my $event;

		kill 'STOP', $reader->pid;
		setitimer(ITIMER_REAL, 0.3);
		$blocked->put(query('SELECT count(*) FROM pgnetlat_clients()'));
		$event //= $observer->value($waits_for) foreach 1 .. 3;
		setitimer(ITIMER_REAL, 0);
		kill 'CONT', $reader->pid;
		$blocked->responses;
		return $event && $event =~ /pgnetlat/ ? $event : undef;
	});
like(
	$lock // 'none',
	qr/^pgnetlat_(reset|accumulate|clients|statements|history)$/,
	'a wait for an LWLock of pgnetlat has the name of its tranche');
$reader->cancel;
$reader->until('Z');
$_->finish foreach $reader, $blocked;

# ---------------------------------------------------------------------------
# Every column but pending_time only grows, and the clock is right, under load
# ---------------------------------------------------------------------------

# Sends requests of all kinds, and pauses now and then.
sub work
{
	my ($until, $name, %options) = @_;
	my $client = PgNetlat::Client->connect(
		$node,
		application_name => $name,
		tcp => rand() < 0.5,
		%options);
	my $requests = 0;

	$client->run('CREATE TEMP TABLE copied (t text)');
	while (now() < $until)
	{
		my $kind = int(rand(8));
		if ($kind == 0)
		{
			$client->run('BEGIN',
				'UPDATE counters SET n = n + 1 WHERE id = 1');
			pause(rand(5));
			$client->run('COMMIT');
			$requests += 2;
		}
		elsif ($kind == 1)
		{
			$client->put(query('SELECT 1') x 10);
			$client->responses(10);
			$requests += 9;
		}
		elsif ($kind == 2)
		{
			$client->put(query('COPY copied FROM STDIN'));
			$client->until('G');
			$client->put(copy_data("line\n"));
			pause(rand(20));
			$client->put(copy_done());
			$client->responses;
		}
		elsif ($kind == 3)
		{
			# the first rows fill all buffers on the way before we read
			$client->put(
				query(
					q{SELECT repeat('x', 1000) FROM generate_series(1, 3000)})
			);
			pause(rand(20));
			$client->responses;
		}
		elsif ($kind == 4)
		{
			$client->put(parse('', 'SELECT 1'), describe('S', ''), flush());
			$client->until('T');
			pause(rand(5));
			$client->put(bind_('', ''), execute(''), sync());
			$client->responses;
			$requests++;
		}
		elsif ($kind == 5)
		{
			$client->error_of('SELECT 1/0');
		}
		elsif ($kind == 6)
		{
			pause(rand(40));
			$client->run('SELECT pg_sleep(0.005)');
		}
		else
		{
			$client->run(q{DO 'BEGIN RAISE NOTICE ''here''; END'});
		}
		$requests++;
	}
	$client->finish;
	return $requests + 1;
}

# Looks at nothing but the sessions, as often as possible.
sub watch
{
	my ($until, $pause, $clock) = @_;
	my $watcher =
	  PgNetlat::Observer->connect($node, application_name => 'watcher');
	my $looks = 0;

	$watcher->expect_clock($clock // 1);

	while (now() < $until)
	{
		$watcher->accounts;
		$watcher->clients if $looks % 10 == 0;
		$looks++;
		pause($pause) if $pause;
	}
	die $watcher->violations if $watcher->violations ne '';
	$watcher->finish;
	return $looks;
}

$until = now() + $duration * 1000;
@watchers =
  (spawn(1, sub { watch($until, 0) }), spawn(1, sub { watch($until, 3) }));
@workers = spawn(
	6,
	sub {
		srand($_[0]);
		work($until, 'worker', receive_buffer => 65536);
	});
$requests = 0;
$requests += $_ foreach reap('workers', @workers);
cmp_ok($_, '>=', 10, 'sessions were read while the workers ran')
  foreach reap('watchers', @watchers);
$sum = $observer->ended('worker', 6);
is($sum->{requests}, $requests, 'every request of the workers was counted');

# The same at the hardest moments: sessions that are just about to change from a
# visible wait to work, or back, and stay there for a while, so that an excess
# is not made up for before the next reading.
$until = now() + $duration * 500;
@watchers = spawn(2, sub { watch($until, 0) });
@workers = spawn(
	6,
	sub {
		my ($number) = @_;
		my $client =
		  PgNetlat::Client->connect($node, application_name => 'changing');
		my $changes = 0;

		$client->run('BEGIN');
		while (now() < $until)
		{
			if ($number % 2)
			{
				$client->run('SELECT pg_sleep(0.001)');
			}
			else
			{
				$client->run('SELECT 1');
				pause(1);
			}
			$changes++;
		}
		$client->finish;
		return $changes;
	});
reap('changing sessions', @workers);
reap('watchers of changing sessions', @watchers);

# ---------------------------------------------------------------------------
# Reset, DROP EXTENSION, terminated sessions, all under load
# ---------------------------------------------------------------------------

# Connects again when its session has been terminated.
sub survive
{
	my ($until) = @_;
	my $ended = 0;

	while (now() < $until)
	{
		next if eval { work($until, 'survivor'); 1 };
		$ended++;
		pause(10);
	}
	return $ended;
}

$until = now() + $duration * 1000;
@watchers = spawn(2, sub { watch($until, 1) });
my @survivors = spawn(6, sub { srand($_[0]); survive($until) });
my ($resets, $terminated) = (0, 0);
while (now() < $until)
{
	$observer->run('SELECT pgnetlat_reset()');
	$resets++;
	$terminated += $observer->value(
		q{SELECT count(pg_terminate_backend(pid)) FROM
		  (SELECT pid FROM pg_stat_activity WHERE application_name = 'survivor'
		   ORDER BY random() LIMIT 1) AS victim}) if $resets % 4 == 0;
	pause(20);
}
reap('survivors', @survivors);
reap('watchers of resets', @watchers);
cmp_ok($resets, '>=', 5, 'statistics were reset under load');
cmp_ok($terminated, '>=', 1, 'sessions were terminated under load');
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) = 0 FROM pgnetlat_sessions
				  WHERE application_name = 'survivor'}) eq 't';
		}),
	'no session is left after resets and terminations');

# Switched off and on: what is counted is less, but it adds up and only grows.
$until = now() + $duration * 500;
@watchers = spawn(1, sub { watch($until, 1, 0) });
@workers = spawn(4, sub { srand($_[0]); work($until, 'switched') });
my $switches = 0;
while (now() < $until)
{
	my $value = $switches++ % 2 ? 'on' : 'off';
	$observer->run("ALTER SYSTEM SET pgnetlat.enabled = $value",
		'SELECT pg_reload_conf()');
	pause(30);
}
$observer->run('ALTER SYSTEM RESET pgnetlat.enabled',
	'SELECT pg_reload_conf()');
$requests = 0;
$requests += $_ foreach reap('workers switched off and on', @workers);
reap('watchers of switches', @watchers);
$sum = $observer->ended('switched', 4);
cmp_ok($sum->{requests}, '<=', $requests,
	'no request was counted while pgnetlat.enabled was off');
ok( $observer->poll(
		sub {
			$observer->run('SELECT 1');
			$observer->value('SHOW pgnetlat.enabled') eq 'on';
		}),
	'pgnetlat.enabled is on again');

$until = now() + $duration * 500;
@workers = spawn(4, sub { srand($_[0]); work($until, 'unaware') });
my $rounds = 0;
while (now() < $until)
{
	$observer->run('DROP EXTENSION pgnetlat', 'CREATE EXTENSION pgnetlat');
	$rounds++;
}
cmp_ok($rounds, '>=', 1, 'the extension was dropped and created under load');
$requests = 0;
$requests += $_ foreach reap('unaware of DROP EXTENSION', @workers);
$sum = $observer->ended('unaware', 4);
is($sum->{requests}, $requests, 'counting does not depend on the extension');

# Whatever has happened, nothing is negative and histograms are cumulative.
foreach my $view (@views, 'pg_stat_activity a, pgnetlat_recent(a.pid)')
{
	my $alias = $view =~ /,/ ? 'pgnetlat_recent' : $view;
	my @negative = $observer->rows(
		"SELECT value.key, value.value
		 FROM $view, jsonb_each(to_jsonb($alias)) AS value
		 WHERE value.key NOT IN ('queryid', 'client_port')
		   AND value.value::text LIKE '-%' LIMIT 5");
	is(join(' ', map { "$_->{key}=$_->{value}" } @negative),
		'', "nothing is negative in $alias");
}
is( $observer->value(
		q{SELECT count(*) FROM
		  (SELECT bucket, le, count, lag(bucket) OVER (PARTITION BY datid, usesysid,
				  application_name, client_addr, metric ORDER BY le::float8) AS previous
			 FROM pgnetlat_histogram) AS h
		  WHERE bucket < previous OR bucket > count OR (le = '+Inf' AND bucket <> count)}
	),
	0,
	'the buckets of every histogram are cumulative');

# ---------------------------------------------------------------------------
# A crash under load
# ---------------------------------------------------------------------------

no_violations($observer);
unlike(
	server_log($node),
	qr/PANIC|TRAP:|terminated by signal/,
	'the log has no crash after resets and terminations');

my $offset = log_size($node);
$until = now() + $duration * 1000;
@survivors = spawn(4, sub { srand($_[0]); survive($until) });
my $victim = PgNetlat::Client->connect($node);
ok( $observer->poll(
		sub {
			my $seen = $observer->client('survivor');
			$seen && $seen->{requests} >= 100;
		}),
	'requests were counted before the crash');
kill 'KILL', $victim->pid;
$observer->until_closed;
$observer = PgNetlat::Observer->poll(
	sub {
		eval { PgNetlat::Observer->connect($node) }
	});
ok($observer, 'the server comes back after the crash');
reap('survivors of a crash', @survivors);
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT array_agg(pid ORDER BY pid) =
						 (SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity
						   WHERE backend_type = 'client backend')
				  FROM pgnetlat_sessions}) eq 't';
		}),
	'after a crash: pgnetlat_sessions has exactly the live sessions');
foreach my $view (@views)
{
	is($observer->error_of("SELECT * FROM $view"),
		'', "after a crash: $view can be read");
}
unlike(
	server_log($node, $offset),
	qr/PANIC|TRAP:|terminated by signal (?!9)/,
	'the log has no other crash');
$offset = log_size($node);

# ---------------------------------------------------------------------------
# Every connection in use
# ---------------------------------------------------------------------------

no_violations($observer);
$observer->finish;
$node->append_conf('postgresql.conf', <<'EOC');
max_connections = 20
superuser_reserved_connections = 0
EOC
$node->restart;
$observer = PgNetlat::Observer->connect($node);
unlike(
	server_log($node, $offset),
	qr/ignoring file/,
	'the file saved under load is loaded');
my @all = map { PgNetlat::Client->connect($node) } 1 .. 19;
$_->run('SELECT 1') foreach @all;
ok(!eval { PgNetlat::Client->connect($node); 1 },
	'every connection is in use');
$observer->settled($_) foreach @all;
is_deeply(
	[ sort map { $_->{pid} } values %{ $observer->accounts } ],
	[ sort map { $_->pid } @all, $observer ],
	'every connection has an account');
$_->finish foreach @all;
ok( $observer->poll(
		sub {
			$observer->value('SELECT count(*) FROM pgnetlat_sessions') == 1;
		}),
	'no session is left after all have disconnected');

no_violations($observer);
unlike(
	server_log($node, $offset),
	qr/PANIC|TRAP:|terminated by signal/,
	'the log has no crash with every connection in use');
$node->stop;
done_testing();
