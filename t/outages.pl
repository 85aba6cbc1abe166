
# Copyright (c) 2026, the pgnetlat authors

# Outages: sessions that get nothing done, for each thing that they can wait for, in
# groups that have made few requests and in groups that have made many.  None may be
# "no problem found", and none may come after what is merely expensive.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# Requests of a group that has made many, within one window.
my $MANY = 120;

my ($node, $observer) = start_node('outages', conf => <<'EOC');
max_connections = 40
superuser_reserved_connections = 3
wal_level = replica
max_wal_senders = 2
synchronous_commit = local
EOC
my $library = backend_library()
  or plan(skip_all => 'needs a C compiler');
$observer->run(
	'CREATE TABLE t (i int PRIMARY KEY, x text)',
	q{INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i},
	"CREATE FUNCTION hold_xid_lock(int) RETURNS void AS '$library' LANGUAGE C",
	'CREATE ROLE shop LOGIN',
	'CREATE ROLE locked_out LOGIN',
	'CREATE ROLE welcome LOGIN',
	'GRANT ALL ON t TO PUBLIC');
append_to_file(
	$node->data_dir . '/pg_hba.conf.new',
	join("\n",
		'local all locked_out reject',
		'local all all trust',
		'host all locked_out all reject',
		'host all all all trust')
	  . "\n");
rename $node->data_dir . '/pg_hba.conf.new', $node->data_dir . '/pg_hba.conf'
  or die "rename: $!\n";
$node->reload;

# Connects; a name with "many" has made many requests.
sub client
{
	my ($name, %options) = @_;
	my $client = PgNetlat::Client->named($node, $name, tcp => 1, %options);

	if ($name =~ /many/)
	{
		$client->run('SELECT 1') foreach 1 .. $MANY;
	}
	return $client;
}

# The findings that concern an application, or the server.
sub findings_of
{
	my ($application) = @_;

	return
	  grep { ($_->{application_name} // '') eq $application }
	  $observer->findings;
}

# Waits for an outage with this verdict; returns its finding.
sub expect_outage
{
	my ($verdict, $application, $evidence) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($row, @rows);

	ok( $observer->poll(
			sub {
				@rows = $observer->findings;
				($row) = grep {
						 $_->{verdict} eq $verdict
					  && $_->{severity} eq 'outage'
					  && ($_->{application_name} // '') eq $application
					  && $_->{evidence} =~ $evidence
				} @rows;
				return $row;
			}),
		"$verdict: an outage of " . ($application || 'the server')
	) or diag(explain(\@rows));
	is($rows[0]{severity}, 'outage', "$verdict: an outage comes first");
	note("$row->{subject}: $row->{evidence}  $row->{advice}") if $row;
	return $row;
}

# A view that exporters read has the outage, too.
sub expect_metric
{
	my ($verdict) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	ok( $observer->poll(
			sub {
				$observer->value(
					"SELECT count(*) FROM pgnetlat_metrics_finding WHERE verdict = '$verdict' AND severity = 'outage'"
				);
			}),
		"$verdict: exporters have it");
	return;
}

# ---------------------------------------------------------------------------
# The standby is gone
# ---------------------------------------------------------------------------

my @commits = map { client($_) } ('commit few') x 3, ('commit many') x 3;
$observer->run(
	q{ALTER SYSTEM SET synchronous_standby_names = 'reporting_dc2'},
	q{SELECT pg_reload_conf()});
$observer->poll(
	sub {
		$observer->value('SHOW synchronous_standby_names') eq 'reporting_dc2';
	});
$_->run('SET synchronous_commit = on') foreach @commits;
$commits[$_]->put(query('INSERT INTO t VALUES (' . (100000 + $_) . ')'))
  foreach 0 .. $#commits;
foreach my $name ('commit few', 'commit many')
{
	my $row = expect_outage(
		'commits wait',
		$name,
		qr/^3 sessions are waiting for a standby to confirm commits, the longest for \d+(\.\d)? s\.  synchronous_standby_names = 'reporting_dc2': no such standby is connected\.$/
	);
	like(
		$row->{advice},
		qr/^Start the standby\..*ALTER SYSTEM SET synchronous_standby_names = ''/,
		"$name: the advice names the setting");
	cmp_ok($row->{lost_sessions}, '>', 0, "$name: it has a cost");
}
expect_metric('commits wait');

# the cure
$observer->run(q{ALTER SYSTEM SET synchronous_standby_names = ''},
	q{SELECT pg_reload_conf()});
$_->responses foreach @commits;
ok( $observer->poll(
		sub {
			!grep { $_->{verdict} eq 'commits wait' } $observer->findings;
		}),
	'commits wait: it is over with the cure of the advice');
$_->finish foreach @commits;

# ---------------------------------------------------------------------------
# A lock
# ---------------------------------------------------------------------------

my $holder = client('migration');
$holder->run('BEGIN', 'UPDATE t SET x = x WHERE i = 1');
my @blocked = map { client($_) } 'lock few', 'lock many';
$_->put(query('UPDATE t SET x = x WHERE i = 1')) foreach @blocked;
expect_outage('blocks others', 'migration', qr/\d/);
expect_metric('blocks others');
$holder->run('COMMIT');
$_->responses foreach @blocked;
$_->finish    foreach $holder, @blocked;

# ---------------------------------------------------------------------------
# A lock inside the server
# ---------------------------------------------------------------------------

my $stopper = client('stopper');
my @stalled = map { client($_) } ('stall few') x 2, ('stall many') x 2;
$stopper->put(query('SELECT hold_xid_lock(3600000)'));
$observer->poll(
	sub {
		$observer->value(
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stopper' AND wait_event_type = 'Extension'"
		);
	});
$_->put(query('SELECT pg_current_xact_id()')) foreach @stalled;
foreach my $name ('stall few', 'stall many')
{
	expect_outage('stalled', $name,
		qr/^2 sessions have been executing for \d+(\.\d)? s or more, and wait inside the server: 2 x LWLock:XidGen\.$/
	);
}
expect_metric('stalled');
$stopper->cancel;
$stopper->until('Z');
$_->responses foreach @stalled;
$_->finish    foreach $stopper, @stalled;

# ---------------------------------------------------------------------------
# Another server
# ---------------------------------------------------------------------------

SKIP:
{
	skip 'postgres_fdw is not installed', 2
	  unless $observer->value(
		"SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'"
	  );
	$observer->run(
		'CREATE EXTENSION postgres_fdw',
		sprintf(
			q{CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres')},
			$node->host, $node->port),
		'CREATE USER MAPPING FOR CURRENT_USER SERVER other',
		'CREATE VIEW slow AS SELECT pg_sleep(3600)::text AS nothing',
		q{CREATE FOREIGN TABLE slow_there (nothing text) SERVER other OPTIONS (table_name 'slow')}
	);
	my $remote = client('remote few');
	my $row;
	$remote->put(query('SELECT * FROM slow_there'));
	ok( $observer->poll(
			sub {
				($row) =
				  grep { $_->{verdict} eq 'stalled' }
				  findings_of('remote few');
				return $row;
			}),
		'another server: one session that gets nothing done is a finding');
	like(
		$row->{evidence},
		qr/^1 session has been executing for \d+(\.\d)? s or more, and waits for another server: 1 x Extension/,
		'another server: the evidence says what it waits for');
	$remote->cancel;
	$remote->until('Z');
	$remote->finish;
}

# ---------------------------------------------------------------------------
# Logins
# ---------------------------------------------------------------------------

sub refused
{
	my (%options) = @_;

	return !eval { PgNetlat::Client->connect($node, %options)->finish; 1; };
}
ok(refused(tcp => 1, user => 'locked_out'), 'a connection is refused')
  foreach 1 .. 8;
expect_outage(
	'connections fail',
	'',
	qr/8 of 8 connections of locked_out to postgres were refused in the last minute \(from 127\.0\.0\.1\): no such role, or pg_hba\.conf does not let it in\./
);
expect_metric('connections fail');
is( $observer->value(
		q{SELECT last_sqlstate || ' ' || failed_last_minute FROM pgnetlat_failed_connections WHERE usename = 'locked_out'}
	),
	'28000 8',
	'pgnetlat_failed_connections has the reason');

# Whoever guesses is no outage, and a role that has connections, too, is none.
$observer->run('SELECT pgnetlat_reset()');
ok(refused(user => "nobody_$_ % 2"), 'a stranger is refused') foreach 1 .. 8;
PgNetlat::Client->connect($node, user => 'welcome')->finish   foreach 1 .. 12;
ok(refused(user => 'welcome', dbname => "no_such_$_"), 'a wrong database')
  foreach 1 .. 4;
my ($row) =
  grep { $_->{verdict} eq 'connections fail' } $observer->findings;
is($row->{severity} // 'none',
	'none', 'single failures of many are no finding')
  or diag(explain($row));

# ---------------------------------------------------------------------------
# Connections are used up
# ---------------------------------------------------------------------------

my @pool;
while (my $client =
	eval { PgNetlat::Client->named($node, 'web', tcp => 1, user => 'shop'); })
{
	push @pool, $client;
	die 'no limit' if @pool > 100;
}
$_->run('SELECT 1') foreach @pool;
ok(refused(tcp => 1, user => 'welcome'), 'a connection more is refused');
$row = expect_outage(
	'too many connections',
	'',
	qr/^\d+ of 40 connections are held: \d+ by web \(\d+ idle\)(, \d+ by [^,]+ \(\d+ idle\))*\.  \d+ connections were refused in the last minute: .*welcome\@127\.0\.0\.1/
);
like(
	$row->{advice},
	qr/^To free some now: SELECT pg_terminate_backend\(pid\) FROM pg_stat_activity WHERE usename = 'shop' AND state = 'idle'/,
	'too many connections: the advice ends the oldest idle ones');
expect_metric('too many connections');
my ($cure) = $row->{advice} =~ /^To free some now: (.*?;)/;
$observer->run($cure);
ok( $observer->poll(sub { !refused(tcp => 1, user => 'welcome'); }),
	'too many connections: it is over with the cure of the advice');

no_violations($observer);
$node->stop;
done_testing();
