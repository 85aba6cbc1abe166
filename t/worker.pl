
# Copyright (c) 2026, the pgnetlat authors

# The library's life cycle: not preloaded, settings, switched off and on,
# restarts, crashes, the end of the sampler, and a clean shutdown.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('lifecycle');

# ---------------------------------------------------------------------------
# Not preloaded
# ---------------------------------------------------------------------------

$node->append_conf('postgresql.conf',
	"shared_preload_libraries = ''\nsession_preload_libraries = ''");
$node->start;

my $client = PgNetlat::Client->connect($node);
is($client->error_of('CREATE EXTENSION pgnetlat'),
	'', 'the extension can be created where the library is not preloaded');

my $must_be_loaded =
  'pgnetlat must be loaded via "shared_preload_libraries"'
  . ($node->pg_version >= 17 ? ' or "session_preload_libraries"' : '');
my @functions = map { $_->{call} } $client->rows(
	q{SELECT p.proname || '(' ||
			 array_to_string(array_fill('''1'''::text, ARRAY[p.pronargs - p.pronargdefaults]), ', ')
			 || ')' AS call
	  FROM pg_depend d
	  JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	  JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'c'
	  JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass
						 AND d.refobjid = e.oid
	  WHERE e.extname = 'pgnetlat' AND d.deptype = 'e' ORDER BY 1});
cmp_ok(scalar @functions, '>=', 9, 'the extension has its functions');
is($client->error_of("SELECT * FROM $_"),
	$must_be_loaded, "not preloaded: function $_ says so")
  foreach @functions;

my @views = map { $_->{relname} } $client->rows(
	q{SELECT relname FROM pg_class WHERE relkind = 'v' AND relname LIKE 'pgnetlat%'
	  ORDER BY 1});
cmp_ok(scalar @views, '>=', 8, 'the extension has its views');

# constants, and what core lists, need nobody
is($client->error_of("SELECT * FROM $_"),
	$must_be_loaded, "not preloaded: view $_ says so")
  foreach grep {
	!/^pgnetlat_((metrics_)?replication|walsenders|thresholds|rules|journal|metrics_exporter)$/
  } @views;
$client->finish;

# ---------------------------------------------------------------------------
# Preloaded: settings
# ---------------------------------------------------------------------------

$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'pgnetlat'
restart_after_crash = on
pgnetlat.idle_threshold = '1h'
EOC
$node->restart;

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE ROLE plain LOGIN');
is($observer->error_of("SELECT count(*) FROM $_"),
	'', "preloaded: view $_ can be read")
  foreach @views;

foreach (
	[
		q{SET pgnetlat.idle_threshold = 'long'},
		qr/^invalid value for parameter "pgnetlat\.idle_threshold": "long"/
	],
	[
		'SET pgnetlat.idle_threshold = -1',
		qr/^-1 ms is outside the valid range for parameter "pgnetlat\.idle_threshold"/
	],
	[
		q{SET pgnetlat.rtt_interval = '1 mile'},
		qr/^invalid value for parameter "pgnetlat\.rtt_interval": "1 mile"/
	],
	[
		'SET pgnetlat.enabled = maybe',
		qr/^parameter "pgnetlat\.enabled" requires a Boolean value/
	],
	[
		'SET pgnetlat.sample_interval = 1',
		qr/^parameter "pgnetlat\.sample_interval" cannot be changed now/
	],
	[
		'ALTER SYSTEM SET pgnetlat.sample_interval = 0',
		qr/^0 ms is outside the valid range for parameter "pgnetlat\.sample_interval"/
	],
	[
		'SET pgnetlat.recorder_size = 100',
		qr/^parameter "pgnetlat\.recorder_size" cannot be changed without restarting/
	],
	[
		'SET pgnetlat.no_such_setting = 1',
		qr/^(invalid configuration|unrecognized configuration) parameter(?: name)? "pgnetlat\.no_such_setting"/
	])
{
	my ($sql, $error) = @$_;
	like($observer->error_of($sql), $error, "core reports an error: $sql");
}

# ---------------------------------------------------------------------------
# Switched off and on
# ---------------------------------------------------------------------------

$observer->expect_clock(0);

$client = PgNetlat::Client->connect($node);
$client->run('SELECT 1', 'SET pgnetlat.enabled = off');
my $off = $observer->await($client->pid, sub { $_->{state} eq 'disabled' });
ok($off, 'a session that is switched off has the state disabled');
$client->run(('SELECT 1') x 10);
pause(100);
my $account = $observer->account($client->pid);
is_deeply(
	delta($off, $account),
	delta($off, $off),
	'nothing is counted while it is off');
is($observer->account($observer->pid)->{state},
	'executing', 'another session stays switched on');
$client->run('SET pgnetlat.enabled = on');
my $on = $observer->await($client->pid, sub { $_->{state} eq 'waiting' });
ok($on, 'a session can be switched on again');
$client->run(('SELECT 1') x 10);
$account = $observer->settled($client, $on->{requests} + 10);
is( $account->{requests},
	$on->{requests} + 10,
	'a session that is switched on counts again');
cmp_ok($on->{requests} - $off->{requests},
	'<=', 1, 'what happened while it was off stays uncounted');
$client->finish;

$client = PgNetlat::Client->connect($node, application_name => 'first');
$client->run(
	'SET pgnetlat.enabled = off',
	q{SET application_name = 'second'},
	'SELECT 1');
my $renamed = $observer->client('second') // {};
is($renamed->{sessions}, 1,
	'a session that is renamed while it is off is in its new group');
$client->run('SET pgnetlat.enabled = on', ('SELECT 1') x 10);
ok( $observer->poll(
		sub { ($observer->client('second') // {})->{requests} == 10 }),
	'and counts there when it is on again');
$client->finish;

# The worker's interval becomes much longer, whatever it is doing at that moment.
$client = PgNetlat::Client->connect($node);
$client->put(query('SELECT pg_sleep(600)'));
my $worker_start =
  $observer->value('SELECT sampler_start FROM pgnetlat_info');
for (1 .. 10)
{
	my $ticks = $observer->value('SELECT sampler_ticks FROM pgnetlat_info');

	$observer->poll(
		sub {
			$observer->value('SELECT sampler_ticks FROM pgnetlat_info') >
			  $ticks + 2;
		});
	$observer->run(q{ALTER SYSTEM SET pgnetlat.sample_interval = '60s'},
		'SELECT pg_reload_conf()');
	pause(rand(20));
	$observer->run('ALTER SYSTEM RESET pgnetlat.sample_interval',
		'SELECT pg_reload_conf()');
}
is( $observer->value(
		'SELECT concat(sampler_errors, sampler_start) FROM pgnetlat_info'),
	"0$worker_start",
	'the sampler keeps running when its interval changes');
$client->cancel;
$client->until('Z');
$client->finish;

my $plain = PgNetlat::Client->connect($node, user => 'plain');
is( $plain->error_of('SET pgnetlat.enabled = off'),
	'permission denied to set parameter "pgnetlat.enabled"',
	'a plain role cannot switch itself off');
$plain->finish;

# the whole server; sessions notice with their next exchange
my @sessions = map { PgNetlat::Client->connect($node) } 1 .. 3;
$_->run('SELECT 1') foreach @sessions;
$observer->run('ALTER SYSTEM SET pgnetlat.enabled = off',
	'SELECT pg_reload_conf()');
foreach (@sessions)
{
	my $session = $_;
	ok( $observer->poll(
			sub {
				$session->run('SELECT 1');
				$observer->account($session->pid)->{state} eq 'disabled';
			}),
		'a session is switched off by the configuration');
}
my $new = PgNetlat::Client->connect($node);
$new->run('SELECT 1');
$account = $observer->account($new->pid);
is($account->{requests}, 0,
	'a session that begins switched off counts nothing')
  if $account;
$observer->run('ALTER SYSTEM RESET pgnetlat.enabled',
	'SELECT pg_reload_conf()');
foreach (@sessions, $new)
{
	my $session = $_;
	ok( $observer->poll(
			sub {
				$session->run('SELECT 1');
				my $seen = $observer->account($session->pid);
				$seen && $seen->{state} eq 'waiting';
			}),
		'a session is switched on by the configuration');
}
$_->finish foreach @sessions, $new;
$observer->expect_clock(1);
no_violations($observer);

# ---------------------------------------------------------------------------
# The worker
# ---------------------------------------------------------------------------

sub sampler_pid
{
	my ($not) = @_;

	return $observer->poll(
		sub {
			my $pid =
			  $observer->value('SELECT sampler_pid FROM pgnetlat_info');
			$pid && $pid ne ($not // 0) ? $pid : undef;
		});
}

$observer = PgNetlat::Observer->connect($node);
my $sampler = sampler_pid();
ok($sampler, 'the sampler runs');
is( $observer->value(
		"SELECT backend_type FROM pg_stat_activity WHERE pid = $sampler"),
	'pgnetlat sampler',
	'the sampler is visible in pg_stat_activity');

my $ticks = $observer->value('SELECT sampler_ticks FROM pgnetlat_info');
ok( $observer->poll(
		sub {
			$observer->value('SELECT sampler_ticks FROM pgnetlat_info') >
			  $ticks;
		}),
	'the sampler ticks');

$client = PgNetlat::Client->connect($node);
$client->run(('SELECT 1') x 5);
my $before = $observer->settled($client);
my $old_sampler = $sampler;
my $sleeper = PgNetlat::Client->connect($node);
$sleeper->put(query('SELECT pg_sleep(600)'));
my $asleep =
  $observer->await($sleeper->pid, sub { $_->{exec_other_time} > 0 });
is($observer->value("SELECT pg_terminate_backend($sampler)"),
	't', 'the sampler is terminated');
$client->run(('SELECT 1') x 5);
$sampler = sampler_pid($old_sampler);
ok($sampler, 'the sampler comes back');
$client->run(('SELECT 1') x 5);
$account = $observer->settled($client);
is($account->{requests} - $before->{requests},
	10, 'sessions count while the sampler is away');
$ticks = $observer->value('SELECT sampler_ticks FROM pgnetlat_info');
ok( $observer->poll(
		sub {
			$observer->value('SELECT sampler_ticks FROM pgnetlat_info') >
			  $ticks;
		}),
	'the sampler ticks again');

# what a session was last seen doing counts until the new sampler's first tick
$account = delta($asleep, $observer->account($sleeper->pid));
cmp_ok(
	$account->{exec_other_time},
	'>=',
	0.8 * $account->{exec_time},
	'what a session does while the sampler is away is sampled');
note("$account->{exec_other_time} of $account->{exec_time} ms");
$sleeper->cancel;
$sleeper->until('Z');
$sleeper->finish;

# the new sampler does not book again what the previous one has booked
my ($holder, $waiter) =
  map { PgNetlat::Client->named($node, $_) } 'holder', 'waiter';

sub blocked
{
	my ($row) = $observer->blockers(q{application_name = 'holder'});

	return $row->{blocked_sessions} ? $row->{blocked_time} : 0;
}
$holder->run('SELECT pg_advisory_lock(1)');
my $blocked_from = now();
$waiter->put(query('SELECT pg_advisory_lock(1)'));
ok($observer->poll(sub { blocked() > 1000 }), 'a lock wait is booked');
foreach my $restart (1 .. 3)
{
	my $booked = blocked();

	$old_sampler = $sampler;
	$observer->run("SELECT pg_terminate_backend($sampler)");
	$sampler = sampler_pid($old_sampler);
	ok( $observer->poll(sub { blocked() > $booked + 100 }),
		"after restart $restart of the sampler: it books the wait");
}

# what is sampled is right to a tick, of each sampler
cmp_ok(
	blocked(), '<=',
	now() - $blocked_from + 4 * 10,
	'no more than the whole wait is booked');
$holder->finish;
$waiter->responses;
$waiter->finish;

# a change of its settings needs no restart
$observer->run('ALTER SYSTEM SET pgnetlat.sample_interval = 1',
	'SELECT pg_reload_conf()');

# a session that is active: else the sampler sleeps
$client->put(query('SELECT pg_sleep(600)'));
ok( $observer->poll(
		sub {
			my $first =
			  $observer->value('SELECT sampler_ticks FROM pgnetlat_info');
			my $paused = pause(400);
			my $second =
			  $observer->value('SELECT sampler_ticks FROM pgnetlat_info');

			# faster than it was before, on a slow machine as well
			$second - $first > $paused / 10 * 1.2;
		}),
	'the sampler follows sample_interval');
ok($observer->await($client->pid, sub { $_->{state} eq 'executing' }),
	'the session is active at the new sample_interval');
$client->cancel;
$client->until('Z');
ok( $observer->await($client->pid, sub { $_->{state} =~ /^(waiting|idle)$/ }),
	"the session's request is over before the reset");
$observer->run('ALTER SYSTEM RESET pgnetlat.sample_interval',
	'SELECT pg_reload_conf()');
is($observer->value('SELECT sampler_errors FROM pgnetlat_info'),
	0, 'the sampler has met no error');

# ---------------------------------------------------------------------------
# Reset
# ---------------------------------------------------------------------------

$before = $observer->account($client->pid);
my $reset = $observer->value('SELECT pgnetlat_reset()');
$client->begin_anew;
$account = $observer->account($client->pid);
is($account->{requests}, 0, 'reset: a waiting session starts from zero');
is($account->{stats_since},
	$reset, 'reset: stats_since of a session is its time');
cmp_ok($account->{total_time},
	'<', $before->{total_time}, 'reset: its time starts from zero');
is($observer->value('SELECT stats_reset FROM pgnetlat_info'),
	$reset, 'reset: stats_reset is set');
$client->run('SELECT 1');
is($observer->settled($client)->{requests},
	1, 'reset: the session counts again');
$new = PgNetlat::Client->connect($node);
ok( $observer->poll(
		sub {
			my $seen = $observer->account($new->pid);
			$seen && $seen->{stats_since} gt $reset;
		}),
	'reset: a session that begins afterwards has its own start');
$new->finish;

# an execution in progress counts from the reset on
$client->put(query('SELECT pg_sleep(600)'));
ok($observer->await($client->pid, sub { $_->{exec_time} >= 500 }),
	'reset in execution: execution grows');
my $reset_from = now();
$observer->run('SELECT pgnetlat_reset()');
$client->begin_anew;
$account = $observer->account($client->pid);
cmp_ok(
	$account->{exec_time}, '<',
	$account->{read_to} - $reset_from,
	'reset in execution: time before it does not count');
ok($observer->await($client->pid, sub { $_->{exec_time} >= 100 }),
	'reset in execution: time after it counts');
$client->cancel;
$client->until('Z');
$account = $observer->settled($client);
is($account->{requests}, 1, 'reset in execution: the exchange counts');
$client->finish;
no_violations($observer);

# ---------------------------------------------------------------------------
# Crash and restart
# ---------------------------------------------------------------------------

$client =
  PgNetlat::Client->connect($node, application_name => 'before_crash');
$client->run(('SELECT 1') x 5);
$observer->settled($client);
$old_sampler = sampler_pid();

my $offset = log_size($node);
kill 'KILL', $client->pid;
$observer->until_closed;
ok($node->poll_query_until('postgres', 'SELECT true'),
	'the server comes back after a crash');
like(
	server_log($node, $offset),
	qr/all server processes terminated; reinitializing/,
	'the log has the crash');

$observer = PgNetlat::Observer->connect($node);
ok(sampler_pid($old_sampler), 'the sampler comes back after a crash');
is($observer->client('before_crash'),
	undef, 'a crash forgets what was counted');
$client = PgNetlat::Client->connect($node);
$client->run(('SELECT 1') x 5);
is($observer->settled($client)->{requests},
	$client->responded, 'sessions are counted after a crash');
is($observer->error_of("SELECT count(*) FROM $_"),
	'', "after a crash: view $_ can be read")
  foreach @views;
no_violations($observer);

$node->restart;
$observer = PgNetlat::Observer->connect($node);
ok(sampler_pid(), 'the sampler runs after a restart');
is($observer->value('SELECT count(*) FROM pgnetlat_sessions'),
	1, 'no session outlives a restart');

# ---------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------

# with sessions that wait, execute and hold transactions open
@sessions = map { PgNetlat::Client->connect($node) } 1 .. 3;
$sessions[0]->put(query('SELECT pg_sleep(600)'));
$sessions[1]->run('BEGIN');
$node->stop('fast');
my ($controldata) = run_command([ 'pg_controldata', $node->data_dir ]);
like(
	$controldata,
	qr/Database cluster state:\s+shut down$/m,
	'the server shuts down cleanly');

# without a postmaster there is nothing to count, and nothing fails
my ($out, $err) = ('', '');
ok( IPC::Run::run(
		[ 'postgres', '--single', '-F', '-D', $node->data_dir, 'postgres' ],
		'<', \"SELECT 17 AS answer\n", '>', \$out, '2>', \$err),
	'the server runs in single-user mode');
like($out, qr/answer = "17"/, 'the single-user server answers a query');
unlike($err, qr/ERROR|PANIC|WARNING/,
	'the single-user server reports no error or warning');

unlike(
	server_log($node),
	qr/PANIC|TRAP:|WARNING:.*(lock|leak)/,
	'the log has no panic, failed assertion or leak');
done_testing();
