
# Copyright (c) 2026, the pgnetlat authors

# Accounts by client and over time: groups, live and ended sessions, histograms
# and the history, which must all agree.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('clients', conf => <<'EOC');
pgnetlat.idle_threshold = '1h'
pgnetlat.max_clients = 10
pgnetlat.history_interval = 1
pgnetlat.history_size = 6
EOC
$observer->run('CREATE ROLE other SUPERUSER LOGIN',
	'CREATE DATABASE elsewhere');

my @counts =
  qw(requests statements transactions pipelined round_trips bytes_sent);

# ---------------------------------------------------------------------------
# Groups
# ---------------------------------------------------------------------------

# database, role, application and address each make a group
my %group = (
	base => {},
	database => { dbname => 'elsewhere' },
	role => { user => 'other' },
	application => { application_name => 'another' },
	address => { tcp => 1 });
my %session;
foreach my $name (sort keys %group)
{
	$session{$name} = PgNetlat::Client->connect(
		$node,
		application_name => 'grouped',
		%{ $group{$name} });
	$session{$name}->run('SELECT 1');
	$observer->settled($session{$name});
}
is( scalar($observer->clients(q{application_name IN ('grouped', 'another')})),
	5, 'database, role, application and address each make a group');
is( scalar(
		grep {
				  $_->{sessions} == 1
			  and $_->{ended_sessions} == 0
			  and $_->{requests} == 1
		} $observer->clients(q{application_name IN ('grouped', 'another')})),
	5,
	'each group has one session and one request');
my ($row) = $observer->clients(
	q{application_name = 'grouped' AND datname = 'elsewhere'});
ok($row, 'a group is found by its datname');
($row) =
  $observer->clients(q{application_name = 'grouped' AND usename = 'other'});
ok($row, 'a group is found by its usename');
($row) = $observer->clients(
	q{application_name = 'grouped' AND client_addr = '127.0.0.1'});
ok($row, 'a group is found by its client_addr');
$_->finish foreach values %session;
$observer->ended('grouped', 4);
$observer->ended('another');
$observer->run('SELECT pgnetlat_reset()');

# ---------------------------------------------------------------------------
# Live and ended sessions
# ---------------------------------------------------------------------------

# Three sessions end and two live on; their last accounts are known.
my %expected = map { $_ => 0 } @counts;
my $total = 0;
my @living;
foreach my $number (1 .. 5)
{
	my $client =
	  PgNetlat::Client->connect($node, application_name => 'summed');

	$client->run(('SELECT 1') x $number);
	$client->put(query('SELECT 2') x $number);
	$client->responses($number);
	my $account = $observer->settled($client);
	$expected{$_} += $account->{$_} foreach @counts;
	$total += $account->{total_time};
	if ($number <= 3)
	{
		$client->finish;
	}
	else
	{
		push @living, $client;
	}
}
my $sum = $observer->poll(
	sub {
		my $seen = $observer->client('summed');
		$seen && $seen->{ended_sessions} == 3 ? $seen : undef;
	});
ok($sum, 'three of five sessions have ended');
is($sum->{sessions}, 2, 'two of five sessions are live');
is($sum->{$_}, $expected{$_}, "$_ of a group is the sum over its sessions")
  foreach @counts;
is($sum->{requests}, 30, 'every request sent in the group is counted');
cmp_ok($sum->{total_time}, '>=', $total,
	'total_time of a group includes all of its sessions');
$_->finish foreach @living;
$sum = $observer->ended('summed', 5);
is($sum->{$_}, $expected{$_}, "$_ stays when all sessions have ended")
  foreach @counts;

# short-lived sessions lose nothing
foreach my $number (1 .. 30)
{
	my $client =
	  PgNetlat::Client->connect($node, application_name => 'short');
	$client->run('SELECT 1');
	$client->finish;
}
$sum = $observer->ended('short', 30);
is($sum->{requests}, 30, 'every request of short sessions is counted');
is($sum->{ended_sessions}, 30, 'every short session is counted');

# ---------------------------------------------------------------------------
# application_name changes
# ---------------------------------------------------------------------------

my $client = PgNetlat::Client->connect($node, application_name => 'before');
$client->run(
	('SELECT 1') x 3,
	q{SET application_name = 'after'},
	('SELECT 1') x 4);
$observer->settled($client);
my $before = $observer->client('before');
my $after = $observer->client('after');
is($before->{requests} + $after->{requests},
	$client->responded, 'change of application_name: no request is lost');
cmp_ok($before->{requests}, '>=', 3,
	'change of application_name: the old group keeps its requests');
cmp_ok($after->{requests}, '>=', 4,
	'change of application_name: later requests are in the new group');
is($before->{sessions}, 0,
	'change of application_name: the session leaves the old group');
is($after->{sessions}, 1,
	'change of application_name: the session joins the new group');
is($observer->account($client->pid)->{application_name},
	'after', 'change of application_name: the session shows the new name');

# back again: the group is the same
$client->run(q{SET application_name = 'before'}, ('SELECT 1') x 5);
$observer->settled($client);
is( $observer->client('before')->{requests} +
	  $observer->client('after')->{requests},
	$client->responded,
	'application_name changed back: no request is lost');
is($observer->client('before')->{sessions},
	1, 'application_name changed back: the first group is used again');

# in a transaction that is rolled back
$client->run('BEGIN', q{SET application_name = 'undone'},
	'SELECT 1', 'ROLLBACK', 'SELECT 1');
$observer->settled($client);
is( $observer->value(
		q{SELECT sum(requests) FROM pgnetlat_clients
		  WHERE application_name IN ('before', 'after', 'undone')}),
	$client->responded,
	'application_name rolled back: no request is lost');
is($observer->client('before')->{sessions},
	1, 'application_name rolled back: the first group is used again');

# twice in one message: memory of the first name may be used again
$client->run(q{SET application_name = 'name 1'});
$client->run(
	q{BEGIN; SET application_name = 'name 2'; COMMIT;
			   BEGIN; SET application_name = 'name 3'; COMMIT}, 'SELECT 1');
$observer->settled($client);
ok(($observer->client('name 3') // {})->{sessions},
	'two changes in one message leave the session in the last group');
$client->finish;
ok( $observer->poll(
		sub {
			my ($seen) = $observer->rows(
				q{SELECT sum(requests) AS requests, sum(ended_sessions) AS ended
				  FROM pgnetlat_clients
				  WHERE application_name IN ('before', 'after', 'undone', 'name 1', 'name 2', 'name 3')}
			);
			$seen->{ended} == 1 and $seen->{requests} == $client->responded;
		}),
	'no request is lost after all changes of application_name');

# ---------------------------------------------------------------------------
# Histograms
# ---------------------------------------------------------------------------

$observer->run('SELECT pgnetlat_reset()');
$client =
  PgNetlat::Client->connect($node, application_name => 'measured', tcp => 1);
$client->run('SELECT 1') foreach 1 .. 40;
$client->run('SELECT pg_sleep(0.06)');
$client->run('SELECT 1; SELECT 2; SELECT 3');
$client->put(query('SELECT 1') x 10);
$client->responses(10);
pause(60);
$client->run('SELECT 1');
my $account = $observer->settled($client);
$client->finish;
$sum = $observer->ended('measured');
is($sum->{requests}, 53,
	"every request of the histograms' session is counted");

my %histogram;
push @{ $histogram{ $_->{metric} } }, $_
  foreach $observer->rows(
	q{SELECT * FROM pgnetlat_histogram WHERE application_name = 'measured'
	  ORDER BY metric, le::float8});
is( join(' ', sort keys %histogram),
	'client connect network request rtt wait',
	'every metric has a histogram');
foreach my $metric (sort keys %histogram)
{
	my @buckets = @{ $histogram{$metric} };
	my $last = $buckets[-1];

	is($last->{le}, '+Inf', "$metric: the last bucket has no bound");
	is($last->{bucket}, $last->{count},
		"$metric: the last bucket holds all observations");
	is( scalar(
			grep { $buckets[$_]{bucket} < $buckets[ $_ - 1 ]{bucket} }
			  1 .. $#buckets),
		0,
		"$metric: buckets are cumulative");
	is( scalar(grep { $_->{le} !~ /^(\d+(\.\d+)?(e-\d+)?|\+Inf)$/ } @buckets),
		0,
		"$metric: bounds are canonical");
	is( scalar(
			grep {
					 $_->{count} != $last->{count}
				  or $_->{sum} != $last->{sum}
			} @buckets),
		0,
		"$metric: sum and count are the same in each row");

	# what is in a bucket is longer than the bound of the one before
	my $least = 0;
	foreach (1 .. $#buckets)
	{
		$least += $buckets[ $_ - 1 ]{le} *
		  ($buckets[$_]{bucket} - $buckets[ $_ - 1 ]{bucket});
	}
	cmp_ok($last->{sum}, '>=', $least,
		"$metric: sum is at least what the buckets imply");
}
is($histogram{request}[0]{count}, 53, 'every exchange is in its histogram');
is($histogram{$_}[0]{count},
	52, "every wait that a request ended is in the $_ histogram")
  foreach qw(wait network client);

# The group's sums may be more: a look at a session that is sending counts the
# time so far as execution.
my $exchanges =
  $account->{exec_time} + $account->{send_time} + $account->{recv_time};
cmp_ok(
	abs($histogram{request}[0]{sum} * 1000 - $exchanges),
	'<=',
	1e-3 * $exchanges + 0.1,
	'the request histogram sums to the time of exchanges');
my ($slow) =
  grep { $_->{le} ne '+Inf' and $_->{le} >= 0.05 and $_->{le} < 0.06 }
  @{ $histogram{request} };
cmp_ok($slow->{bucket}, '<', 53,
	'the slow exchange is in no bucket of faster ones')
  if $slow;

# More statements in one exchange than the recorder holds
$observer->run('SELECT pgnetlat_reset()');
$client = PgNetlat::Client->connect($node, application_name => 'long');
$client->run(join('; ', 'SELECT pg_sleep(0.2)', ('SELECT 1') x 200));
$client->finish;
$sum = $observer->ended('long');
is($sum->{statements}, 201, 'every statement of one exchange is counted');
($row) = $observer->rows(
	q{SELECT * FROM pgnetlat_histogram WHERE application_name = 'long'
	  AND metric = 'request' AND le = '+Inf'});
is($row->{count}, 1, 'many statements in one exchange are one observation');
at_least($row->{sum}, 0.2,
	'many statements in one exchange are observed with all their time');
is($observer->value('SELECT sum(calls) FROM pgnetlat_statements'),
	201, 'every statement of one exchange is a call');

# An exchange that is looked at before it is over
$client = PgNetlat::Client->connect($node, application_name => 'watched');
$client->put(query('SELECT pg_sleep(0.3); SELECT pg_sleep(0.3)'));
ok( $observer->await(
		$client->pid,
		sub {
			$observer->rows('SELECT * FROM pgnetlat_histogram');
			$_->{exec_time} >= 350;
		}),
	'an exchange is read while its second statement runs');
$client->responses;
$client->finish;
$sum = $observer->ended('watched');
($row) = $observer->rows(
	q{SELECT * FROM pgnetlat_histogram WHERE application_name = 'watched'
	  AND metric = 'request' AND le = '+Inf'});
is($row->{count}, 1, 'an exchange read while in progress is one observation');
at_least($row->{sum}, 0.6,
	'an exchange read while in progress is observed with all its time');

# The number of observations in a histogram, and their sum in milliseconds.
sub observed
{
	my ($application, $metric) = @_;
	my ($last) = $observer->rows(
		qq{SELECT count, sum * 1000 AS sum FROM pgnetlat_histogram
		   WHERE application_name = '$application' AND metric = '$metric'
			 AND le = '+Inf'});

	return ($last->{count}, $last->{sum});
}

# The exchange in which application_name changes belongs to the old group, in
# the account and in the histograms.
$observer->run('SELECT pgnetlat_reset()');
$client = PgNetlat::Client->connect($node, application_name => 'old name');
$client->run('SELECT 1', 'SELECT 1',
	q{SELECT pg_sleep(0.06); SET application_name = 'new name'},
	'SELECT 1', 'SELECT 1', 'SELECT 1', 'SELECT 1');
$observer->settled($client);
$client->finish;
$observer->ended('new name');
foreach ([ 'old name', 3 ], [ 'new name', 4 ])
{
	my ($name, $expected) = @$_;
	my $group = $observer->client($name);
	my ($count, $time) = observed($name, 'request');
	my $busy =
	  $group->{exec_time} + $group->{send_time} + $group->{recv_time};

	is($group->{requests}, $expected, "$name: every request is counted");
	is($count, $expected, "$name: the histogram has all of them");
	cmp_ok(abs($time - $busy),
		'<', 5, "$name: the histogram has the time of its requests");
}

# A session that is terminated while it waits has not counted a request.
foreach my $doing ('SELECT 2', 'SELECT pg_sleep(600)')
{
	my $name =
	  $doing =~ /sleep/ ? 'terminated at work' : 'terminated in a wait';

	$client = PgNetlat::Client->connect($node, application_name => $name);
	$client->run('SELECT 1');
	$observer->settled($client);
	$client->put(query($doing));
	if ($name eq 'terminated at work')
	{
		$observer->await($client->pid, sub { $_->{state} eq 'executing' });
	}
	else
	{
		$client->until('Z');
		$observer->settled($client);
	}
	$observer->run('SELECT pg_terminate_backend(' . $client->pid . ')');
	$client->until_closed;
	my $group = $observer->ended($name);
	is($group->{requests}, 2, "$name: both requests are counted");
	is((observed($name, 'request'))[0],
		2, "$name: the histogram has as many requests");
	is((observed($name, 'wait'))[0],
		1, "$name: only the wait that a request ended is observed");
}

# ---------------------------------------------------------------------------
# History
# ---------------------------------------------------------------------------

my $consistent = q{
	SELECT (SELECT sum(requests) FROM pgnetlat_history) AS history,
		   (SELECT sum(requests) FROM pgnetlat_clients) AS clients};
$observer->run('SELECT pgnetlat_reset()');
$client = PgNetlat::Client->connect($node, application_name => 'remembered');
$client->run(('SELECT 1') x 10);
$observer->settled($client);
my ($both) = $observer->rows($consistent);
is($both->{history}, $both->{clients},
	'history and clients agree on requests');

ok( $observer->poll(
		sub {
			$client->run('SELECT 1');
			$observer->value(
				'SELECT count(DISTINCT bucket_start) FROM pgnetlat_history')
			  >= 3;
		}),
	'three intervals have begun');
my @intervals = $observer->rows(
	q{SELECT bucket_start, bucket_end, lead(bucket_start) OVER w AS next,
			 bucket_start < coalesce(bucket_end, now()) AS positive
	  FROM (SELECT DISTINCT bucket_start, bucket_end FROM pgnetlat_history) h
	  WINDOW w AS (ORDER BY bucket_start) ORDER BY bucket_start});
is( scalar(
		grep { defined $_->{next} and $_->{next} ne $_->{bucket_end} }
		  @intervals),
	0,
	'each interval begins where the one before ends');
is(scalar(grep { $_->{positive} ne 't' } @intervals),
	0, 'each interval ends after it begins');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_history
		  WHERE abs(exec_time + send_time + recv_time + network_time + client_time
					+ idle_time - total_time) > 1e-6 + 1e-9 * total_time
			 OR round_trips <> requests - pipelined OR requests < 0 OR exec_time < 0}),
	0,
	'parts sum to total_time in each interval');
my $impossible = q{
	SELECT count(*) FROM pgnetlat_history
	 WHERE send_blocked_time > send_time + 1e-6
		OR send_client_time > send_blocked_time + 1e-6
		OR in_xact_wait_time > network_time + client_time + 1e-6
		OR least(server_share, network_share, client_share) < -1e-9};
is($observer->value($impossible),
	0, 'no part exceeds its whole in any interval');
ok( $observer->poll(
		sub {
			$observer->value('SELECT min(bucket_start) FROM pgnetlat_history')
			  gt $intervals[0]{bucket_start};
		}),
	'the oldest interval is dropped');
cmp_ok(
	$observer->value(
		'SELECT count(DISTINCT bucket_start) FROM pgnetlat_history'),
	'<=', 7,
	'history_size limits the number of intervals');

# A blocked send whose cause, the client, is known late: the sampler asks about
# a stuck connection at the second tick, and closes an interval at each.
sub next_tick
{
	my $ticks = $observer->value('SELECT sampler_ticks FROM pgnetlat_info');

	ok( $observer->poll(
			sub {
				$observer->value('SELECT sampler_ticks FROM pgnetlat_info') >
				  $ticks;
			}),
		'the sampler ticks');
	return;
}

$observer->run(q{ALTER SYSTEM SET pgnetlat.sample_interval = '2s'},
	'SELECT pg_reload_conf()');
next_tick();
my $stuck = PgNetlat::Client->connect(
	$node,
	application_name => 'stuck',
	dbname => 'elsewhere',
	tcp => 1);
next_tick();
$stuck->put(
	query(q{SELECT repeat('x', 10000) FROM generate_series(1, 4000)}));
ok($observer->await($stuck->pid, sub { $_->{send_blocked_time} > 100 }),
	'a send is blocked');
next_tick();
is($observer->value($impossible),
	0, 'no part exceeds its whole while a send is blocked');
$stuck->responses;
my $sent = $observer->settled($stuck);
cmp_ok($sent->{send_client_time},
	'>', 1000, 'the client is found to have blocked the send');
is($observer->value($impossible),
	0, 'no part exceeds its whole after a send was blocked');
$stuck->finish;
$observer->ended('stuck');

# from here on the sampler closes no interval: none is lost on a slow machine
$observer->run(
	'ALTER SYSTEM RESET pgnetlat.sample_interval',
	q{ALTER SYSTEM SET pgnetlat.history_interval = '1h'},
	'SELECT pg_reload_conf()');

# ---------------------------------------------------------------------------
# More groups than there is room for
# ---------------------------------------------------------------------------

$observer->run('SELECT pgnetlat_reset()');
$client->begin_anew;
my $requests = 0;
@living = ();
foreach my $number (1 .. 40)
{
	my $new =
	  PgNetlat::Client->connect($node, application_name => "crowd $number");

	$new->run(('SELECT 1') x 3);
	$requests += 3;
	if ($number % 3 == 0)
	{
		push @living, { client => $new, name => "crowd $number" };
		$observer->settled($new);
	}
	else
	{
		$new->finish;
		$observer->poll(
			sub {
				!$observer->account($new->pid);
			});
	}
}
$client->run('SELECT 1');
$observer->settled($client);
my ($sums) = $observer->rows(
	q{SELECT sum(requests) AS requests, sum(ended_sessions) AS ended,
			 count(*) FILTER (WHERE usesysid IS NULL) AS others
	  FROM pgnetlat_clients WHERE application_name IS DISTINCT FROM 'observer'});
cmp_ok(
	$sums->{requests}, '>=',
	$requests + 1,
	'requests of evicted groups stay in the sums');
is($sums->{ended}, 27, 'ended sessions of evicted groups stay in the sums');
is($sums->{others}, 1, 'evicted groups share one row');
is( $observer->value('SELECT sum(sessions) FROM pgnetlat_clients'),
	$observer->value('SELECT count(*) FROM pgnetlat_sessions'),
	'every live session is in a group');
($both) = $observer->rows($consistent);
is($both->{history}, $both->{clients},
	'history and clients agree after evictions');
cmp_ok($observer->value('SELECT clients_evicted FROM pgnetlat_info'),
	'>=', 30, 'evictions are counted');

# groups that have live sessions stay, whatever comes and goes
my $with_room = q{usesysid IS NOT NULL AND sessions > 0};
my @groups = $observer->clients("$with_room ORDER BY application_name");
is(scalar @groups, 10, 'groups of live sessions take all the room');
foreach my $number (1 .. 20)
{
	my $new =
	  PgNetlat::Client->connect($node,
		application_name => "passer-by $number");
	$new->run('SELECT 1');
	$new->finish;
}
ok( $observer->poll(
		sub {
			my ($others) = $observer->clients('usesysid IS NULL');
			$others->{ended_sessions} >= 47;
		}),
	'sessions without room for their group are in the row of the evicted');
is_deeply(
	[
		map { "$_->{application_name} $_->{stats_since}" }
		  $observer->clients("$with_room ORDER BY application_name")
	],
	[ map { "$_->{application_name} $_->{stats_since}" } @groups ],
	'groups of live sessions are not evicted');

# and get a row of their own when there is room
my %has_room = map { $_->{application_name} => 1 } @groups;
my ($roomless) = grep { !$has_room{ $_->{name} } } @living;
ok($roomless, 'there is a live session whose group has no room');

# until then its time is in the row of the evicted, and stays there
pause(300);
$observer->clients;
my $no_room_until = now();
$_->{client}->finish foreach grep { $_ != $roomless } @living;
ok( $observer->poll(
		sub {
			my $seen = $observer->client($roomless->{name});
			$seen && $seen->{sessions} == 1;
		}),
	'the group of a live session gets a row when there is room');
cmp_ok(
	$observer->client($roomless->{name})->{total_time},
	'<=',
	now() - $no_room_until,
	'the row of a group that got room has no time from before');
$roomless->{client}->run('SELECT 1');
$observer->settled($roomless->{client});
is($observer->client($roomless->{name})->{requests},
	1, 'the group that got a row counts from then on');

# An exchange in the middle of which there was a reset is in no histogram.
{
	my $reset = PgNetlat::Client->connect($node, application_name => 'reset');

	$reset->put(query('SELECT pg_sleep(1); SELECT pg_sleep(0.1)'));
	$observer->await($reset->pid, sub { $_->{state} eq 'executing' });
	$observer->run('SELECT pgnetlat_reset()');
	$reset->responses;
	$reset->run('SELECT 1');
	$observer->settled($reset, 2);
	is( $observer->value(
			q{SELECT max(count) FROM pgnetlat_histogram
			  WHERE application_name = 'reset' AND metric = 'request'}),
		1,
		'an exchange with a reset in its middle is in no histogram');
	$reset->finish;
}

no_violations($observer);
$node->stop;
done_testing();
