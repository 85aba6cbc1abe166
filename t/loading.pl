
# Copyright (c) 2026, the pgnetlat authors

# The library on a server that was started without it: loaded by sessions.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node =
  new_node('loading', init => { allows_streaming => 1 }, conf => <<'EOC');
shared_preload_libraries = ''
session_preload_libraries = ''
max_prepared_transactions = 2
restart_after_crash = on
pgnetlat.sampler_timeout = '1h'
EOC
plan skip_all =>
  'only a server that is started with the library has memory for it'
  if $node->pg_version < 17;
$node->start;

# Connects anew until a condition is met on the client, in $_; returns its result.
sub poll_connecting
{
	my ($condition, %options) = @_;

	return PgNetlat::Observer->poll(
		sub {
			my $result;
			eval {
				local $_ = PgNetlat::Client->connect($node, %options);
				$result = $condition->();
				$_->finish;
				1;
			} or note($@);
			return $result;
		});
}

# Has new sessions load a library, or none.
sub load
{
	my ($client, $file) = @_;

	$client->run(
		$file
		? "ALTER SYSTEM SET session_preload_libraries = '$file'"
		: 'ALTER SYSTEM RESET session_preload_libraries',
		'SELECT pg_reload_conf()');
	ok( poll_connecting(
			sub {
				$_->value(
					q{SELECT btrim(current_setting('session_preload_libraries'), '"')}
				) eq $file;
			}),
		"new sessions load '$file'");
	return;
}

# What a client sees of the session with this process ID.
sub row
{
	my ($client, $pid) = @_;

	my ($row) =
	  $client->rows("SELECT * FROM pgnetlat_sessions WHERE pid = $pid");
	return $row // {};
}

sub is_counted
{
	my ($client) = @_;

	return defined row($client, $client->pid)->{requests};
}

sub sampler_pid
{
	return $_[0]->value('SELECT sampler_pid FROM pgnetlat_info');
}

sub requests_so_far
{
	return $_[0]->value(
		'SELECT requests FROM pgnetlat_sessions WHERE pid = pg_backend_pid()'
	);
}

# ---------------------------------------------------------------------------
# From now on
# ---------------------------------------------------------------------------

my $old = PgNetlat::Client->connect($node, application_name => 'old');
$old->run('CREATE EXTENSION pgnetlat');
like(
	$old->error_of('SELECT * FROM pgnetlat_info'),
	qr/^pgnetlat must be loaded via "shared_preload_libraries" or "session_preload_libraries"/,
	'where no session is counted, functions say what to do');
load($old, 'pgnetlat');

my $observer = PgNetlat::Observer->connect($node);
my $new = PgNetlat::Client->connect($node, application_name => 'new');
$new->run(('SELECT 1') x 5);
is($observer->settled($new)->{requests}, 5, 'a new session is counted');
$new->put(query('SELECT pg_sleep(600)'));
ok($observer->await($new->pid, sub { $_->{exec_other_time} > 0 }),
	'the sampler looks at it');
$new->cancel;
$new->until('Z');
is(row($observer, $new->pid)->{connect_time},
	undef, 'what connecting has cost is not known');

# ---------------------------------------------------------------------------
# What is missing is said
# ---------------------------------------------------------------------------

my $seen = row($observer, $old->pid);
is( join(' ',
		map { $seen->{$_} // '-' }
		  qw(application_name usename datname client_port state total_time)),
	'old ' . $observer->value('SELECT current_user') . ' postgres -1 - -',
	'a session that has connected before has an identity, and no account');
ok(!is_counted($old), 'a session that reads our views is not counted');
my ($info) = $observer->rows('SELECT * FROM pgnetlat_info');
is( "$info->{loaded_by} $info->{counted_sessions} of $info->{client_sessions}",
	'sessions 2 of 3',
	'pgnetlat_info says how many are counted');
is($info->{problem}, undef, 'nothing is wrong');

my $line = '1 of 3 sessions have not loaded pgnetlat';
is($observer->value('SELECT doing FROM pgnetlat_now WHERE pid IS NULL'),
	$line, 'so does pgnetlat_now');
is( $observer->value(
		q{SELECT evidence FROM pgnetlat_diagnose() WHERE verdict = 'not counted'}
	),
	$line,
	'and pgnetlat_diagnose()');

$observer->run('CREATE TABLE t (i int)', 'INSERT INTO t VALUES (1)');
$old->run('BEGIN', 'UPDATE t SET i = 2');
$new->put(query('UPDATE t SET i = 3'));
ok( $observer->await($new->pid, sub { ($_->{blocked_by} // 0) == $old->pid }),
	'a holder of locks that is not counted is named by its process ID');
is( $observer->value('SELECT application_name FROM pgnetlat_metrics_holder'),
	'old', '... and by its application');
$old->run('COMMIT');
$new->until('Z');

# ---------------------------------------------------------------------------
# One role, one database, one session
# ---------------------------------------------------------------------------

load($observer, '');
$observer->run(
	'CREATE ROLE shop LOGIN',
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE other',
	'GRANT other TO shop',
	q{ALTER ROLE shop SET session_preload_libraries = 'pgnetlat'},
	'CREATE DATABASE counted',
	q{ALTER DATABASE counted SET session_preload_libraries = 'pgnetlat'});
my $shop = PgNetlat::Client->connect($node, user => 'shop');
my $plain = PgNetlat::Client->connect($node, user => 'plain');
my $elsewhere =
  PgNetlat::Client->connect($node, dbname => 'counted', user => 'plain');
$_->run('SELECT 1') foreach $shop, $plain, $elsewhere;
is( join(
		' ',
		map {
			defined row($observer, $_->pid)->{requests}
			  ? 'counted'
			  : 'not'
		} $shop,
		$plain,
		$elsewhere),
	'counted not counted',
	'sessions of one role, and of one database, are counted');

is( $plain->error_of(q{LOAD 'pgnetlat'}),
	'access to library "pgnetlat" is not allowed',
	'a plain role cannot load the library');
$plain->run('SELECT count(*) FROM pgnetlat_sessions');
ok( !defined row($observer, $plain->pid)->{requests},
	'... and is not counted when it reads our views');
is( $plain->error_of('SET pgnetlat.enabled = off'),
	'permission denied to set parameter "pgnetlat.enabled"',
	'... and cannot set what is for superusers');
is( PgNetlat::Client->connect(
		$node,
		user => 'shop',
		options => '-c pgnetlat.enabled=off')->value('SHOW pgnetlat.enabled'),
	'on',
	'... nor when it connects');

my $loading = PgNetlat::Client->connect($node);
ok(!is_counted($loading), 'a session is not counted');
$loading->run(q{LOAD 'pgnetlat'}, 'SELECT 1', 'SELECT 2');
ok(is_counted($loading), 'LOAD counts it, after it has read our views');
$loading->finish;
$loading = PgNetlat::Client->connect($node);
$loading->run('BEGIN', q{LOAD 'pgnetlat'}, 'SELECT 1', 'SELECT 2', 'COMMIT');
is($observer->settled($loading, 3)->{requests},
	3, 'LOAD counts from the next request on');
$loading->run('DISCARD ALL', 'SELECT 1');
is($observer->settled($loading, 5)->{requests},
	5, '... also after DISCARD ALL');
$loading->finish;

$shop->run('SET ROLE other', 'SELECT 1');
my $requests = $shop->responded;
$shop->finish;
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT coalesce(sum(requests), 0) FROM pgnetlat_clients WHERE usename = 'shop' AND ended_sessions > 0}
			) >= $requests;
		}),
	'a session that ends with another role is in its group');

# ---------------------------------------------------------------------------
# Other processes
# ---------------------------------------------------------------------------

load($observer, 'pgnetlat');
$new = PgNetlat::Client->connect($node);
$new->run(
	'CREATE TABLE big AS SELECT generate_series(1, 100000) AS i',
	'ANALYZE big',
	'SET debug_parallel_query = on',
	'SET parallel_setup_cost = 0',
	'SET min_parallel_table_scan_size = 0');
is($new->value('SELECT count(*) FROM big WHERE i > 0'),
	100000, 'parallel workers work');
is($observer->settled($new)->{requests},
	$new->responded, '... and are not counted as sessions');
$new->finish;
$node->backup('copy');
ok(1, 'walsenders work');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
my $reader = PgNetlat::Observer->connect($standby);
$reader->run('SELECT 1') foreach 1 .. 3;
ok($reader->poll(sub { is_counted($reader) && sampler_pid($reader) }),
	'a session of a standby is counted, and sampled');
$standby->promote;
my $counted = requests_so_far($reader);
$reader->run('SELECT 1');
cmp_ok(requests_so_far($reader),
	'>', $counted, '... also when it is promoted');
$reader->finish;
$standby->stop;

my $sampler = sampler_pid($observer);
$observer->run("SELECT pg_terminate_backend($sampler)");
ok( $observer->poll(sub { (sampler_pid($observer) // $sampler) != $sampler }),
	'a sampler that was terminated comes back');

# ---------------------------------------------------------------------------
# The sampler's end, and what is kept
# ---------------------------------------------------------------------------

sub bye
{
	$_->finish foreach $observer, $old, @_;
	return;
}

sub requests_of_new
{
	return $_[0]->value(
		q{SELECT coalesce(sum(requests), 0) FROM pgnetlat_clients WHERE application_name = 'new'}
	);
}

my $quiet = PgNetlat::Client->connect($node,
	options => '-c session_preload_libraries=');

sub samplers
{
	return $quiet->value(
		q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgnetlat sampler'}
	);
}

no_violations($observer);
my $kept = requests_of_new($observer);
cmp_ok($kept, '>=', 7, 'there is something to be kept');
$observer->run(q{ALTER SYSTEM SET pgnetlat.sampler_timeout = '1s'},
	'SELECT pg_reload_conf()');
bye($plain, $elsewhere);
ok( PgNetlat::Observer->poll(sub { samplers() == 0 }),
	'the sampler ends after the last counted session');
ok(-e $node->data_dir . '/pg_stat/pgnetlat.stat', 'the figures are saved');
like(
	$quiet->error_of('SELECT * FROM pgnetlat_info'),
	qr/must be loaded/,
	'... and the memory is free');

$observer = PgNetlat::Observer->connect($node);
is(requests_of_new($observer), $kept, 'the next session loads the figures');
ok($observer->poll(sub { samplers() == 1 }), '... and starts the sampler');
ok($observer->poll(sub { !-e $node->data_dir . '/pg_stat/pgnetlat.stat' }),
	'... and the file is gone');
$_->finish foreach $observer, $quiet;

$node->append_conf('postgresql.conf', q{pgnetlat.max_clients = 20});
$node->restart;
$observer = PgNetlat::Observer->connect($node);
is(requests_of_new($observer),
	$kept, 'figures are kept when the server is restarted');
is($observer->value('SELECT clients_max FROM pgnetlat_info'),
	20, 'memory has the size of the settings');

# A server that is stopped while sessions are connected saves what they have counted.
$new = PgNetlat::Client->connect($node, application_name => 'new');
$new->run(('SELECT 1') x 10);
$node->restart;
$observer = PgNetlat::Observer->connect($node);
is(requests_of_new($observer),
	$kept + 10, '... with those of sessions that it ends');

# ---------------------------------------------------------------------------
# A crash
# ---------------------------------------------------------------------------

$new = PgNetlat::Client->connect($node);
kill 'KILL', $new->pid;
$observer->until_closed;
ok( poll_connecting(sub { is_counted($_) && sampler_pid($_) }),
	'sessions are counted, and sampled, after a crash');

# ---------------------------------------------------------------------------
# A newer library, and a missing one
# ---------------------------------------------------------------------------

my $library = $node->config_data('--pkglibdir') . '/pgnetlat.so';
my $newer = "${PostgreSQL::Test::Utils::tmp_check}/newer";
mkdir $newer;
my $content = slurp_file($library);
is($content =~ s/ layout 1/ layout 2/g,
	1, 'a library with another layout is made');
append_to_file("$newer/pgnetlat.so", $content);
chmod 0755, "$newer/pgnetlat.so";

$observer = PgNetlat::Observer->connect($node);
$observer->value('SELECT count(*) FROM pgnetlat_sessions');
load($observer, "$newer/pgnetlat.so");
my @newer = map { PgNetlat::Client->connect($node) } 1 .. 3;
$_->run(('SELECT 1') x 10) foreach @newer;
ok(defined row($observer, $observer->pid)->{requests},
	'sessions with the older library go on');
is(row($observer, $newer[0]->pid)->{requests},
	undef, '... and do not see what those with a newer one count');
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pgnetlat sampler'}
			) == 1;
		}),
	'one sampler serves the older library');
$_->finish foreach @newer;

load($observer, 'pgnetlat');
$observer->run(
	q{ALTER SYSTEM SET session_preload_libraries = 'no_such_library'},
	'SELECT pg_reload_conf()');
ok( PgNetlat::Observer->poll(
		sub {
			!eval { PgNetlat::Client->connect($node)->finish; 1 };
		}),
	'a missing library is an error of core');
$observer->run(q{ALTER SYSTEM SET session_preload_libraries = 'pgnetlat'},
	'SELECT pg_reload_conf()');
ok(poll_connecting(sub { is_counted($_) }), 'and can be put right');

# ---------------------------------------------------------------------------
# Many connections
# ---------------------------------------------------------------------------

$observer->value('SELECT pgnetlat_reset()');
my $ended = 0;
foreach (1 .. 300)
{
	my $short = PgNetlat::Client->connect($node, application_name => 'short');
	$short->run('SELECT 1');
	$short->finish;
}
ok( $observer->poll(
		sub {
			$ended = $observer->value(
				q{SELECT coalesce(sum(ended_sessions), 0) FROM pgnetlat_clients WHERE application_name = 'short'}
			);
			$ended == 300;
		}),
	'each of many short connections is counted');
no_violations($observer);
$observer->finish;
$node->stop;

# ---------------------------------------------------------------------------
# What the server cannot give
# ---------------------------------------------------------------------------

# One worker slot, which logical replication's launcher has.
$node->append_conf('postgresql.conf', 'max_worker_processes = 1');
$node->start;
my $offset = log_size($node);
$observer = PgNetlat::Observer->connect($node);
$observer->run('SELECT 1');
ok(is_counted($observer), 'a session is counted without a sampler');
is( $observer->value('SELECT problem FROM pgnetlat_info'),
	'pgnetlat has no sampler: no background worker slots are available',
	'pgnetlat_info says that there is no worker');
PgNetlat::Client->connect($node)->finish foreach 1 .. 5;
is(scalar(() = server_log($node) =~ /LOG:  pgnetlat has no sampler/g),
	1, 'the log says it once');
$observer->finish;
$node->stop;

# A limit for files is one for shared memory, too; it is 20 or 40 MB, as the shell counts.
$node->append_conf('postgresql.conf', <<'EOC');
max_worker_processes = 8
pgnetlat.recorder_size = 5000
EOC
my ($data_dir, $log) = ($node->data_dir, $node->logfile);
$offset = log_size($node);
system_or_bail('sh', '-c',
	"ulimit -f 40960; exec pg_ctl --wait --pgdata='$data_dir' --log='$log' start >/dev/null"
);
my $client = PgNetlat::Client->connect($node);
is($client->value('SELECT 1'), 1, 'without memory for it a session works');
like(
	$client->value('SELECT problem FROM pgnetlat_info'),
	qr/^pgnetlat has no shared memory: could not resize shared memory segment/,
	'pgnetlat_info says that there is none');
PgNetlat::Client->connect($node)->finish foreach 1 .. 5;
is( scalar(
		() =
		  server_log($node, $offset) =~ /LOG:  pgnetlat has no shared memory/g
	),
	1,
	'the log says it once');
$client->run(q{ALTER SYSTEM SET pgnetlat.recorder_size = 24},
	'SELECT pg_reload_conf()');
ok( poll_connecting(
		sub {
			# so that it is tried again at once
			unlink "$data_dir/pg_stat_tmp/pgnetlat.problem";
			is_counted($_);
		}),
	'when there is memory again, sessions are counted');
$client->finish;
system_or_bail('pg_ctl', '--wait', '--pgdata', $data_dir, 'stop');

done_testing();
