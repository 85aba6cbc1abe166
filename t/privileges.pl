
# Copyright (c) 2026, the pgnetlat authors

# Privileges: a role sees of other roles' sessions what pg_stat_activity shows
# it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('roles');
$observer->run(
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE monitor LOGIN IN ROLE pg_read_all_stats',
	'CREATE ROLE owner LOGIN',
	'CREATE ROLE member LOGIN IN ROLE owner');

my %session = map {
	$_ => PgNetlat::Client->connect(
		$node,
		tcp => 1,
		user => $_,
		application_name => "app of $_")
} qw(plain monitor owner member);
$session{super} = $observer;

my $subject = $session{owner};
$subject->run('SELECT 42 AS secret', 'SELECT 42 AS secret', 'SELECT 1');
$observer->settled($subject);
my $pid = $subject->pid;
my $queryid = $observer->value(
	"SELECT queryid FROM pgnetlat_recent($pid) WHERE queryid IS NOT NULL LIMIT 1"
);
ok($queryid, 'the session has run a statement');

foreach my $name (sort keys %session)
{
	my $caller = $session{$name};
	my $may = $name ne 'plain';

	# row by row as core has it
	my ($row) = $caller->rows(
		"SELECT s.pid = a.pid AS pid,
				s.datid = a.datid AS datid,
				s.datname = a.datname AS datname,
				s.usesysid = a.usesysid AS usesysid,
				s.usename = a.usename AS usename,
				s.application_name IS NOT DISTINCT FROM a.application_name AS application_name,
				s.client_addr IS NOT DISTINCT FROM a.client_addr AS client_addr,
				s.client_port IS NOT DISTINCT FROM a.client_port AS client_port,
				s.backend_start IS NOT DISTINCT FROM a.backend_start AS backend_start,
				(s.state IS NULL) = (a.state IS NULL) AS state,
				(s.state_change IS NULL) = (a.state_change IS NULL) AS state_change
		   FROM pgnetlat_sessions s JOIN pg_stat_activity a USING (pid)
		  WHERE s.pid = $pid");
	is($row->{$_}, 't', "$name: $_ is as in pg_stat_activity")
	  foreach sort keys %$row;
	is( $caller->value(
			"SELECT client_addr IS NOT NULL FROM pgnetlat_sessions WHERE pid = $pid"
		),
		$may ? 't' : 'f',
		"$name: " . ($may ? 'sees' : 'does not see') . ' the address');

	is( $caller->value(
			"SELECT requests >= 3 AND total_time > 0 AND bytes_sent > 0
			 FROM pgnetlat_sessions WHERE pid = $pid"),
		$may ? 't' : undef,
		"$name: " . ($may ? 'sees' : 'does not see') . ' the account');

	is( $caller->value(
			"SELECT count(*) = 1 AND
					count(window_time) + count(state) + count(exec_time) + count(client_port) =
						CASE WHEN " . ($may ? 'true' : 'false') . " THEN 4 ELSE 0 END
			   FROM pgnetlat_sessions_last('10 s') WHERE pid = $pid"),
		't',
		"$name: "
		  . ($may ? 'sees' : 'does not see')
		  . ' the account of the last seconds');

	# what has no counterpart there
	is( $caller->value(
			"SELECT count(*) > 0 FROM pgnetlat_clients
			 WHERE client_addr IS NOT NULL AND usename = 'owner'"),
		$may ? 't' : 'f',
		"$name: visibility of a client group's address");
	is( $caller->value(
			"SELECT count(*) > 0 FROM pgnetlat_clients_last()
			 WHERE client_addr IS NOT NULL AND usename = 'owner'"),
		$may ? 't' : 'f',
		"$name: visibility of a client group's address over a window");
	is( $caller->value(
			"SELECT count(*) > 0 FROM pgnetlat_histogram
			 WHERE client_addr IS NOT NULL AND usename = 'owner'"),
		$may ? 't' : 'f',
		"$name: visibility of a histogram's address");
	is( $caller->value(
			"SELECT count(*) > 0 FROM pgnetlat_statements s JOIN pg_roles r
			 ON r.oid = s.userid WHERE r.rolname = 'owner' AND s.queryid IS NOT NULL"
		),
		$may ? 't' : 'f',
		"$name: visibility of another role's statements");
	is( $observer->poll(
			sub {
				my $count = $caller->value(
					"SELECT count(wait_event) FROM pgnetlat_waits WHERE pid = $pid"
				);
				!$may || $count > 0 ? ($count > 0 ? 't' : 'f') : undef;
			}),
		$may ? 't' : 'f',
		"$name: visibility of another role's wait events");

	like(
		$caller->error_of("SELECT $_"),
		qr/^permission denied for function pgnetlat_reset_/,
		"$name: may not call $_")
	  foreach $name eq 'super'
	  ? ()
	  : ("pgnetlat_reset_session($pid)", 'pgnetlat_reset_clients()');

	my $seen = eval {
		$caller->value("SELECT count(queryid) FROM pgnetlat_recent($pid)");
	} // 0;
	cmp_ok($seen, $may ? '>' : '==',
		0, "$name: visibility of another role's flight recorder");

	is( $caller->value(
			'SELECT state IS NOT NULL AND client_addr IS NOT DISTINCT FROM
			 inet_client_addr() FROM pgnetlat_sessions WHERE pid = pg_backend_pid()'
		),
		't',
		"$name: sees its own session");
	is($caller->value('SELECT version FROM pgnetlat_info') // '',
		'1.0', "$name: sees the version");
	ok(defined $caller->value('SELECT count(*) FROM pgnetlat_history'),
		"$name: sees the history");
	is($caller->error_of('SELECT * FROM pgnetlat_top_statements'),
		'', "$name: sees the top statements");
}

# ---------------------------------------------------------------------------
# Nothing but these columns of what is not the caller's
# ---------------------------------------------------------------------------

# Column by column, so that a new one is covered as well: rows of the functions
# (the views add no more than names), with the columns that everybody may see;
# of what others have done, there is nothing.
my %public = (
	sessions => [qw(pid datid usesysid application_name)],
	waits => [],
	blockers => [qw(datid usesysid application_name)],
	blockers_last => [qw(datid usesysid application_name)],
	statements => [qw(userid dbid)],
	statements_last => [qw(userid dbid)],
	top_statements => [qw(database role)],
	clients => [qw(datid usesysid application_name)],
	clients_last => [qw(datid usesysid application_name)],
	sessions_last => [qw(pid datid usesysid application_name)],
	histogram => [],
	history => [qw(bucket_start bucket_end datid)],
	pools => [qw(datid usesysid sessions)],
	pools_last => [qw(datid usesysid sessions)],
	what_if => [qw(datid usesysid application_name)],
	mean_transactions => [qw(datid usesysid application_name processors)]);
my %with_arguments = (mean_transactions => q{NULL, '1 min'});
my %is_view = map { $_ => 1 }
  qw(sessions waits blockers statements top_statements clients histogram history pools);

is( $observer->value(
		"SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc
		  WHERE proname LIKE 'pgnetlat%' AND proretset
			AND proargnames && '{usesysid,userid}'
			AND substr(proname, 10) <> ALL ('{"
		  . join(',', keys %public) . "}')"),
	'pgnetlat_activity_texts pgnetlat_diagnose pgnetlat_findings pgnetlat_query_texts pgnetlat_recorded_texts',
	'all functions with rows of roles are looked at, here, below or in t/diagnose.pl'
);

# a plain role gets no text of anybody else's
foreach my $texts (
	'pgnetlat_query_texts()',
	'pgnetlat_recorded_texts(NULL)',
	"pgnetlat_activity_texts('{$queryid}')")
{
	is( $session{plain}->value(
			"SELECT count(*) FROM $texts t WHERE t.userid <> (SELECT oid FROM pg_roles WHERE rolname = current_user)"
		),
		0,
		"$texts: no text of other roles");
}

# As the server has them: a function, or its view.
sub hidden_but_seen
{
	my ($caller, $from, $function) = @_;
	my $mine = $function =~ /statements/ ? 'userid' : 'usesysid';
	my $columns = join ',', @{ $public{$function} }, qw(datname usename);
	my $others =
		$function eq 'history' ? 'true'
	  : $function eq 'waits'
	  ? 'pid NOT IN (SELECT pid FROM pg_stat_activity WHERE usename = current_user)'
	  : $function eq 'top_statements' ? 'role IS DISTINCT FROM current_user'
	  :   "$mine IS DISTINCT FROM (SELECT oid FROM pg_roles WHERE rolname = current_user)";

	return $caller->value(
		"SELECT string_agg(DISTINCT key, ' ' ORDER BY key)
		   FROM $from x, jsonb_each(to_jsonb(x))
		  WHERE $others AND value <> 'null'
			AND key <> ALL ('{$columns}')") // '';
}

# somebody blocks others
my $waiting = PgNetlat::Client->connect($node, user => 'owner');
$subject->run('SELECT pg_advisory_lock(1)');
$waiting->put(query('SELECT pg_advisory_lock(1)'));
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pgnetlat_blockers
				  WHERE usename = 'owner' AND queryid IS NOT NULL AND blocked_time > 0}
			);
		}),
	'a role blocks another session');
foreach my $name (sort keys %session)
{
	my $may = $name ne 'plain';

	is( $session{$name}->value(
			q{SELECT least(count(queryid), count(blocked_time), count(client_addr),
					count(backend_type)) = count(*) AND count(*) > 0
				FROM pgnetlat_blockers WHERE usename = 'owner'}),
		$may ? 't' : 'f',
		"$name: " . ($may ? 'sees' : 'does not see') . ' the blocker');

	# the holder may have begun another transaction: then it is looked for anew
	is( $observer->poll(
			sub {
				my $count = $session{$name}->value(
					'SELECT count(blocked_by) + count(exec_lock_time)
						FROM pgnetlat_sessions WHERE pid = ' . $waiting->pid);
				!$may || $count == 2 ? "count $count" : undef;
			}),
		$may ? 'count 2' : 'count 0',
		"$name: visibility of another role's blocked_by");
}
$subject->run('SELECT pg_advisory_unlock(1)');
$waiting->responses;
$waiting->finish;

my $caller = PgNetlat::Client->connect($node, user => 'plain');
foreach my $function (sort keys %public)
{
	my $arguments = $with_arguments{$function} // '';

	is( hidden_but_seen($caller, "pgnetlat_$function($arguments)", $function),
		'',
		"pgnetlat_$function() hides other roles' figures");
	next if !$is_view{$function};
	is(hidden_but_seen($caller, "pgnetlat_$function", $function),
		'', "pgnetlat_$function: the view hides other roles' figures");
	isnt($caller->value("SELECT count(*) FROM pgnetlat_$function"),
		0, "pgnetlat_$function: the view has rows")
	  if $function ne 'waits';
}
is( $caller->value(
		"SELECT count(*) FROM pgnetlat_sessions
		 WHERE pid = $pid AND usename = 'owner' AND application_name = 'app of owner'"
	),
	1,
	'a plain role sees that another session exists');
$caller->finish;

# ---------------------------------------------------------------------------
# What only some may do
# ---------------------------------------------------------------------------

like(
	$session{$_}->error_of('SELECT pgnetlat_reset()'),
	qr/permission denied for function pgnetlat_reset/,
	"$_: may not call pgnetlat_reset()"
) foreach qw(plain monitor owner member);
$observer->run('GRANT EXECUTE ON FUNCTION pgnetlat_reset() TO monitor');
is($session{monitor}->error_of('SELECT pgnetlat_reset()'),
	'', 'a role with EXECUTE may reset');
is($observer->error_of('SELECT pgnetlat_reset()'), '', 'superuser may reset');

foreach (
	'pgnetlat.enabled = off',
	'pgnetlat.idle_threshold = 1',
	'pgnetlat.rtt_interval = 1',
	'pgnetlat.track_statements = off',
	'pgnetlat.log_min_duration = 0')
{
	my ($setting) = /^(\S+)/;

	is( $session{plain}->error_of("SET $_"),
		qq{permission denied to set parameter "$setting"},
		"plain role may not set $setting");
	is($observer->error_of("SET $_; RESET $setting"),
		'', "superuser may set $setting");
}

no_violations($observer);
$node->stop;
done_testing();
