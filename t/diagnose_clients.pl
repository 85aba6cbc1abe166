
# Copyright (c) 2026, the pgnetlat authors

# The rules of pgnetlat_diagnose() about clients, paths and CPUs: what is alike and
# is not to be taken for one another, over made-up figures and under real loads.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Figures;
use PgNetlat::Observer;
use PgNetlat::Relay;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('clients');

use_figures($observer);

sub verdicts
{
	return join ', ', map { $_->{verdict} } @_;
}

# ---------------------------------------------------------------------------
# Figures of which any may be 0, or enormous
# ---------------------------------------------------------------------------

# a window inside a COPY that its client does not read, over loopback
group(
	qw(rtt 0.01  sessions 1  requests 0  exec_time 100  send_time 58000
	  send_blocked_time 58000  send_client_time 58000  client_time 2000  packets_sent 1900
	  packets_received 900  retransmits 85  bytes_sent 100e6));
my @found = found();
is($found[0]{verdict},
	'slow reader', 'packets sent again, and no network time: no error');

foreach my $seed (1 .. 5)
{
	$observer->run("SELECT setseed(0.$seed)");
	foreach my $table (qw(c s st p b h))
	{
		fill($table, 300);
	}
	ok(eval { found(); 1 }, "random figures, $seed: no error") or diag($@);
}

# ---------------------------------------------------------------------------
# A client whose host is gone
# ---------------------------------------------------------------------------

# A COPY that nobody reads any more, and a group that is healthy beside it.
sub gone
{
	my ($silent, %session) = @_;

	group(
		qw(rtt 1  requests 1000  exec_time 2000  network_time 1000  client_time 4000
		  idle_time 50000  sessions 3),
		application_name => 'web');
	session(
		qw(pid 71  rtt 1  requests 20),
		client_addr => "'10.0.0.7'",
		application_name => 'export',
		unanswered_since => "clock_timestamp() - interval '$silent s'",
		%session);
	return;
}
my %copy = (
	state => 'sending',
	qw(age 50  send_time 50000  send_blocked_time 50000  send_client_time 40000  bytes_sent 1e6)
);
gone(40, %copy);
group(
	qw(rtt 1  requests 20),
	application_name => 'export',
	client_addr => "'10.0.0.7'",
	map { $_ => $copy{$_} } grep { /_/ } keys %copy);
@found = expect(
	'unreachable',
	qr/^Its client's host has acknowledged nothing for 40 s, while the session is sending$/,
	'host gone in a COPY');
is($found[0]{severity}, 'outage', 'host gone in a COPY: an outage');
is($found[0]{pid}, 71,
	'host gone in a COPY: the finding is about the session');
is(scalar(@found), 1, 'host gone in a COPY: the only finding')
  or diag(verdicts(@found));
like(
	$found[0]{advice},
	qr/pg_terminate_backend\(71\).*tcp_user_timeout.*tcp_keepalives_idle/,
	'host gone in a COPY: the advice ends it');

# a response of which nothing has been booked, in a transaction and outside
gone(20, state => 'waiting in transaction', age => 20, pending_time => 20000);
@found = expect(
	'unreachable',
	qr/for 20 s, while the session is idle in transaction$/,
	'host gone in a transaction');
is($found[0]{severity}, 'outage', 'host gone in a transaction: an outage');
gone(20, state => 'waiting', age => 20, pending_time => 20000);
@found = expect('unreachable', undef, 'host gone outside a transaction');
is($found[0]{severity}, 'loss', 'host gone outside a transaction: a loss');
gone(20, state => 'waiting', age => 20, pending_time => 20000);
session(
	pid => 72,
	state => 'executing',
	qw(age 10  blocked_by 71),
	wait_event => "'advisory'",
	qw(exec_time 10000  exec_lock_time 10000),
	application_name => 'worker');
@found = grep { $_->{verdict} eq 'unreachable' } found();
is($found[0]{severity},
	'outage', 'host gone with an advisory lock that others want: an outage');

# too early to say
gone(2, %copy, age => 2);
@found = grep { $_->{verdict} eq 'unreachable' } found();
is($found[0]{severity}, 'loss', 'no answer for 2 s: not yet an outage');

# ---------------------------------------------------------------------------
# Repeated statements
# ---------------------------------------------------------------------------

# A connection pool of asyncpg, with its own commands between each two: nothing
# repeats, but there are as many executions as another statement has rows.
sub pooled_loop
{
	my (%child) = @_;

	statement(qw(calls 11190  rows 11190  exec_time 1100  network_time 11190),
		%child);
	statement(
		qw(queryid 43  calls 20  rows 11180  exec_time 100  network_time 20));
	statement(qw(queryid 44  calls 11210  exec_time 300  network_time 11210));
	group(
		qw(rtt 1  requests 22420  network_time 22420  exec_time 1500  client_time 3000
		  sessions 10),
		application_name => 'importer');
	return;
}
pooled_loop();
@found = expect(
	'repeated statement',
	qr/^11170 of 11190 executions by importer could be part of statement 43, which has as many rows\. Each costs 1 ms of round trip /,
	'N+1 through a connection pool');
is($found[0]{queryid},
	42, 'N+1 through a connection pool: the finding is about the statement');
is(scalar(@found), 1, 'N+1 through a connection pool: the only finding')
  or diag(verdicts(@found));
like(
	$found[0]{advice},
	qr/To get the statement's text: .* WHERE query_id = 42\.$/,
	'N+1 through a connection pool: the advice says where the text is');
pooled_loop(calls => 10500, rows => 10500, network_time => 10500);
unlike(verdicts(found()), qr/repeated/,
	'fewer executions than another statement has rows: not repeated');
pooled_loop(rows => 0);
unlike(verdicts(found()), qr/repeated/,
	'executions without rows: not repeated');

# 5,000 statements, of which 500 repeat, and all could be parents
sub many
{
	$observer->run(
		q{INSERT INTO figures.st (dbid, userid, queryid, window_time, calls, rows, exec_time, network_time,
								  repeats, repeat_network_time, in_xact_wait_time)
		  SELECT 5, 10, i, 60000, calls, 10 * calls, calls / 10, calls, repeats, repeats, calls
			FROM generate_series(1, 5000) i,
				 LATERAL (SELECT 1000 + i AS calls, CASE WHEN i > 4500 THEN 900 + i ELSE 0 END AS repeats) x}
	);
	return;
}

sub cpu_seconds
{
	my @fields = split ' ', slurp_file('/proc/' . $observer->pid . '/stat');

	return ($fields[13] + $fields[14]) / 100;
}
SKIP:
{
	skip 'there is no /proc', 2 unless -r '/proc/self/stat';
	many();
	my $before = cpu_seconds();
	@found = found();
	cmp_ok(cpu_seconds() - $before,
		'<', 1.5,
		'500 repeated statements of 5,000: the rule takes little CPU time');
	is(scalar(@found), 20,
		'500 repeated statements of 5,000: so many findings');
}

# Many round trips for a statement whose text is not known: what the sessions have just
# done says whether it is a FETCH.
foreach my $fetched (0, 1)
{
	statement(calls => 2000, network_time => 4000);
	my %app = (
		qw(rtt 2  requests 2100  transactions 50  network_time 4200  exec_time 700
		  in_xact_wait_time 4000));
	group(%app);
	session(%app, pid => 200);
	add('recents',
		qw(session 200  queryid 42  wait_time 2),
		xact_status => "'T'",
		fetched => $fetched) foreach 1 .. 5;
	@found = expect(
		'chatty',
		$fetched
		? qr/^42 round trips per transaction, 2 ms each, take 84 of 98 ms\. Most fetch further rows\. Statement 42$/
		: qr/^42 round trips per transaction, 2 ms each, take 84 of 98 ms\. Statement 42$/,
		"a statement without a text, fetched: $fetched");
	like(
		$found[0]{advice},
		$fetched ? qr/^Fetch more rows/ : qr/^Send several statements/,
		"a statement without a text, fetched: $fetched: the advice");
}

# ---------------------------------------------------------------------------
# Few requests that execute nearly all the time
# ---------------------------------------------------------------------------

# 34 sorts of 1.8 s that spill to disk
my %sorter = (
	qw(requests 34  exec_time 46000  exec_cpu_time 40000  exec_io_time 6000  idle_time 14000)
);

sub spills
{
	my ($pid) = @_;

	add('w',
		pid => $pid,
		state => "'executing'",
		wait_event_type => $_->[0],
		wait_event => $_->[1],
		time => $_->[2])
	  foreach [ "'CPU'", "'CPU'", 40000 ],
	  [ "'IO'", "'BufFileWrite'", 6000 ];
	add('databases', datid => 5, temp_bytes => 9e9);
	return;
}
group(%sorter);
session(%sorter, pid => 60);
spills(60);
@found = expect(
	'server-bound',
	qr/^1176 of 1353 ms per request are CPU time\. Temporary files took 6000 ms in all, and the database has written 9000 MB of them/,
	'one session that sorts');
is($found[0]{severity}, 'note', 'one session that sorts: a note');
like(
	$found[0]{advice},
	qr/Raise work_mem/,
	'one session that sorts: the advice is about memory');
group(%sorter, sessions => 2);
@found = expect(
	'server-bound',
	qr/^1176 of 1353 ms per request are CPU time$/,
	'two sessions that sort');
is($found[0]{severity}, 'loss', 'two sessions that sort: a loss');
group(%sorter, exec_cpu_time => 25000);
healthy('less than half of the time');

# a session that waits for another server
group(requests => 18, exec_time => 58000, exec_remote_time => 57000);
@found = expect(
	'server-bound',
	qr/^3167 of 3222 ms per request are waiting for another server/,
	'few calls of another server');
is($found[0]{severity}, 'loss', 'few calls of another server: a loss');

# VACUUM, most of which is its cost delay
my %vacuum = (
	qw(requests 60  exec_time 59000  exec_other_time 45000  exec_cpu_time 10000)
);

group(%vacuum);
session(%vacuum, pid => 61, state => 'executing');
add('w',
	pid => 61,
	state => "'executing'",
	wait_event_type => "'Timeout'",
	wait_event => "'VacuumDelay'",
	time => 45000);
healthy('VACUUM and its cost delay');
group(%vacuum);
session(%vacuum, pid => 61);
add('w',
	pid => 61,
	state => "'executing'",
	wait_event_type => "'IPC'",
	wait_event => "'BtreePage'",
	time => 45000);
expect(
	'server-bound',
	qr/^750 of 983 ms per request are other waits/,
	'the same with another wait event');

# ---------------------------------------------------------------------------
# A slow reader, or a narrow path?
# ---------------------------------------------------------------------------

# 200 kB each 100 ms over 5 ms
my %portions = (
	qw(rtt 5  requests 1  exec_time 800  send_time 22200  send_blocked_time 22100
	  packets_sent 30000  bytes_sent 44e6));

foreach my $closed (5000, 10900, 12800)
{
	group(%portions, send_client_time => $closed);
	@found = expect('slow reader', undef,
		"a window that was closed for $closed of 22100 ms");
	near(
		$found[0]{lost_sessions},
		22.1 / 60,
		"a window that was closed for $closed of 22100 ms: all of it is lost"
	);
}
group(%portions, send_client_time => 600);
expect('narrow path', undef, 'a window that was hardly ever closed');

# ---------------------------------------------------------------------------
# Without a CPU
# ---------------------------------------------------------------------------

# through a transaction pooler; and an ETL job, on a machine with idle CPUs
group(
	qw(requests 9000  exec_time 1200  exec_cpu_time 1100  exec_unsampled_time 100
	  client_time 9000  run_queue_time 1180  run_queue_wait_time 900));
healthy('sessions of a pooler, which had to wait for a CPU for a moment');
group(
	qw(requests 40  exec_time 24000  exec_cpu_time 24000  run_queue_time 11000)
);
healthy('a job that had to wait for a CPU now and then');
group(
	qw(requests 1000  exec_time 49000  exec_cpu_time 48700  run_queue_time 48700
	  run_queue_wait_time 500  exec_unsampled_time 200));
expect(
	'starved',
	qr/^It waited for a CPU for 48\.7 of 49\.4 s/,
	'a busy machine');

# ---------------------------------------------------------------------------
# Connections, transactions
# ---------------------------------------------------------------------------

# monitoring, every few seconds
group(
	qw(requests 25  exec_time 100  connections 25  connect_time 1080  ended_sessions 25
	  sessions 0));
healthy('25 probes of a monitoring system');

# ---------------------------------------------------------------------------
# A proxy, a few milliseconds before the client
# ---------------------------------------------------------------------------

sub waits
{
	my ($status, @wait) = @_;

	$observer->run(
		sprintf
		  q{INSERT INTO figures.recents (session, wait_time, xact_status) SELECT 62, unnest(ARRAY[%s]), '%s' FROM generate_series(1, 10)},
		join(',', @wait),
		$status);
	return;
}
my %proxied = (
	qw(rtt 0.02  requests 7000  transactions 1000  exec_time 1500  client_time 42000
	  in_xact_wait_time 36000),
	client_addr => "'127.0.0.1'");

sub proxied
{
	my ($status, %row) = @_;

	group(%proxied, %row);
	session(%proxied, %row, pid => 62);
	waits($status, 6.0, 6.1, 6.0, 6.2, 6.4);
	return;
}
proxied('T');
@found = expect(
	'hidden path',
	qr/^The round trip is 0\.02 ms, but 80 % of the waits in transactions took between 6 ms and 6\.\d+ ms\. A proxy may hide the path$/,
	'a proxy, 6 ms before the client');
is($found[0]{severity}, 'loss', 'a proxy, 6 ms before the client: a loss');
unlike(verdicts(@found), qr/client-bound/,
	'a proxy, 6 ms before the client: the client is not told to think less');
group(%proxied);
session(%proxied, pid => 62);
waits('T', 1, 3.5, 6, 9, 20);
like(verdicts(found()), qr/client-bound/,
	'a client on this machine that thinks, now more, now less');

my %loop = (
	qw(transactions 7000  in_xact_wait_time 0  exec_time 2000  client_time 58000
	  total_time 60000));

proxied('I', %loop);
@found = expect(
	'hidden path',
	qr/A proxy may hide the path, or the client asks on a schedule$/,
	'a proxy, outside transactions');
is(verdicts(@found), 'hidden path',
	'a proxy, outside transactions: the only finding');
near($found[0]{lost_sessions},
	0, 'a proxy, outside transactions: nothing is lost');
group(%proxied, %loop);
session(%proxied, %loop, pid => 62);
waits('I', 1, 3.5, 6, 9, 20);
@found = expect('client-bound', undef, 'a loop of a client on this machine');
is($found[0]{severity}, 'note', 'a loop of a client on this machine: a note');

# who has just executed a repeated statement
my %child = (
	qw(calls 2000  repeats 1900  network_time 4000  repeat_network_time 3800
	  in_xact_wait_time 3900  exec_time 200));

statement(%child);
foreach my $application ('shop', 'web', 'other')
{
	my %group = (
		application_name => $application,
		qw(rtt 2  requests 2100  transactions 100  network_time 2000  in_xact_wait_time 1900
		  exec_time 200));

	group(%group);
	session(%group, pid => 62 + length $application);
}
$observer->run(
	'INSERT INTO figures.recents (session, queryid) VALUES (66, 42), (65, 42), (67, 43)'
);
expect(
	'repeated statement',
	qr/ executions by shop, web /,
	'a repeated statement of two applications');

# ---------------------------------------------------------------------------
# Real loads
# ---------------------------------------------------------------------------

# Runs a script again, under the name of what it does, until the finding is there:
# on a busy machine, waits are not always alike.
sub expect_of
{
	my ($name, $port, $verdict, $evidence, @script) = @_;
	my $found;

	local $ENV{PGAPPNAME} = $name;
	for my $attempt (1 .. 5)
	{
		my $in = join("\n", @script) . "\n";

		$observer->run('SELECT pgnetlat_reset()');
		my $psql = IPC::Run::start(
			[
				'psql', '-qXAt', '-h',
				$port == $node->port ? $node->host : '127.0.0.1',
				'-p', $port, 'postgres'
			],
			'<' => \$in,
			'>' => \my $out);
		$psql->pump while ($out // '') !~ /the end/;
		($found) = grep {
				 ($_->{application_name} // '') eq $name
			  && $_->{verdict} eq $verdict
			  && $_->{evidence} =~ $evidence
		} $observer->findings;
		$psql->finish;
		$observer->ended($name);
		last if $found;
	}
	ok($found, "$name: there is a finding $verdict")
	  or diag(explain([ $observer->findings ]));
	return $found // {};
}

my $relay = PgNetlat::Relay->start($node, delay => 12);
my $finding = expect_of(
	'asks through a proxy',
	$relay->port,
	'hidden path',
	qr/in transactions took between 1\d/,
	(map { ('BEGIN;', ('SELECT 1;') x 6, 'COMMIT;') } 1 .. 8),
	q(SELECT 'the end';));

is($finding->{severity}, 'loss', 'asks through a proxy: a loss');
$relay->stop;

no_violations($observer);
$node->stop;
done_testing();
