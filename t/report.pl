
# Copyright (c) 2026, the pgnetlat authors

# The report: data for whoever asks, as much as the caller may see; and a page in which
# what comes from users stays data.  test/report has it drawn by a browser.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use JSON::PP;
use PgNetlat::Client;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $evil = q{</script><script>alert(1)</script><!-- &amp;};
my $limit = 300_000;

my ($node, $observer) = start_node('report');
$observer->run(
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE monitor LOGIN IN ROLE pg_read_all_stats',
	qq{CREATE ROLE "$evil" LOGIN},
	qq{CREATE DATABASE "$evil"},
	'CREATE SCHEMA elsewhere',
	'GRANT USAGE ON SCHEMA elsewhere TO PUBLIC',
	'ALTER EXTENSION pgnetlat SET SCHEMA elsewhere');

# Somebody blocks somebody, and both have names to be afraid of.
my ($holder, $waiter) = map {
	PgNetlat::Client->connect(
		$node,
		tcp => 1,
		user => $evil,
		application_name => $evil)
} 1 .. 2;
my $query = qq{SELECT pg_advisory_xact_lock(1) AS "$evil\x{e2}\x{80}\x{a8}"};
$holder->run('BEGIN', $query);
$waiter->put(query($query));
my $other = PgNetlat::Client->connect(
	$node,
	dbname => $evil,
	application_name => 'elsewhere');
$other->run('SELECT 1');

sub answer
{
	my ($role, $expression) = @_;
	return $node->safe_psql(
		'postgres',
		"SELECT elsewhere.$expression",
		extra_params => [ '-U', $role ]);
}

sub data { return decode_json(answer($_[0], 'pgnetlat_report_data()')); }

$observer->poll(
	sub {
		grep { defined $_->{blocked_by} }
		  @{ data('monitor')->{waiting} // [] };
	});

# ---------------------------------------------------------------------------
# The data
# ---------------------------------------------------------------------------

my $data = data('monitor');
is_deeply(
	[ sort keys %$data ],
	[
		sort
		  qw(report info headlines thresholds findings now clients history waiting blockers histograms
		  statements failed_connections pools what_if settings)
	],
	'the data has all subjects');
cmp_ok(scalar @{ $data->{findings} }, '>', 0, 'the data has a finding');
my ($group) =
  grep { $_->{application_name} eq $evil } @{ $data->{clients} };
is($group->{usename}, $evil,
	'the data has the group of hostile clients by name');
is( $data->{clients}[0]{total_time} -
	  $data->{clients}[0]{idle_time} -
	  $data->{clients}[0]{pending_time},
	$data->{clients}[0]{busy_time},
	'busy_time is what is neither idle nor pending');

my ($waits) = grep { defined $_->{blocked_by} } @{ $data->{waiting} };
is_deeply(
	[ @{$waits}{qw(pid blocked_by)}, $waits->{behind} ],
	[ $waiter->pid, $holder->pid, [ $holder->pid ] ],
	'the data says who waits for whom');
like(
	$waits->{query},
	qr/^SELECT pg_advisory_xact_lock/,
	'the data has the waiting query');
like(
	answer('monitor', 'pgnetlat_report_data()'),
	qr/"queryid": "-?\d+"/,
	'query identifiers are strings, which have all their digits');

# One session with three statements in turn shows one text at any moment.
my $file = "$PostgreSQL::Test::Utils::tmp_check/turns.sql";
append_to_file($file, join '', map { "SELECT pg_sleep(0.02)$_;\n" } '',
	', 1', ', 1, 2');
my $turns = IPC::Run::start(
	[
		'pgbench', '-n', '-f', $file,
		'-T', '3600', '-h', $node->host,
		'-p', $node->port, '-U', 'plain',
		'postgres'
	],
	'>',
	\my $out,
	'2>',
	\my $err);
ok( $observer->poll(
		sub {
			my @texts = grep { ($_->{query} // '') =~ /^SELECT pg_sleep/ }
			  @{ data('monitor')->{statements} };
			return @texts >= 2;
		}),
	'without pg_stat_statements, texts come from several looks at pg_stat_activity'
);
$turns->signal('TERM');
$turns->finish;

# ---------------------------------------------------------------------------
# What a role may not see is not in it
# ---------------------------------------------------------------------------

my $own = data('plain');
ok(!$own->{report}{sees_all}, 'a plain role: sees_all is false');
ok(!(grep { $_->{usename} eq $evil } @{ $own->{clients} // [] }),
	"a plain role does not see other roles' groups");
is($own->{history}, undef, 'a plain role does not see the history');
unlike(encode_json($own), qr/pg_advisory_xact_lock/,
	"a plain role does not see other roles' queries");
like(encode_json($data), qr/pg_advisory_xact_lock/,
	"pg_read_all_stats sees other roles' queries");

# ---------------------------------------------------------------------------
# The page
# ---------------------------------------------------------------------------

my $empty = answer('plain', 'pgnetlat_report_page()');
cmp_ok(length $empty, '<', $limit, 'the page without data is small');
unlike($empty, qr/[^\t\n -~]/, 'the page without data is printable ASCII');
is(() = $empty =~ /\@data\@/g,
	1, 'the page without data has one place for data');
unlike($empty, qr/^\@include/m, 'the page without data has no include left');
unlike(
	$empty,
	qr{\b(?:src|href)=["']?+(?!#)|url\(|\bimport\b|\bfetch\(|innerHTML|insertAdjacentHTML|document\.write},
	'the page loads nothing and makes no markup of strings');

my $page = answer('monitor', q{pgnetlat_report('1 min')});
my ($embedded) =
  $page =~ m{<script type="application/json" id="data">(.*?)</script>}s;
unlike($embedded, qr/[<>&]/, 'data in the page has no character of markup');
my $again = decode_json($embedded);
is_deeply(
	[ sort keys %$again ],
	[ sort 'past', keys %$data ],
	'data in the page has all subjects, and the last day');
is( (grep { $_->{application_name} eq $evil } @{ $again->{clients} })
	[0]{usename},
	$evil,
	'data in the page has the hostile name');
(my $rest = $page) =~ s/\Q$embedded\E/\@data\@/;
is($rest, $empty, 'nothing else of the page depends on the data');

$holder->run('COMMIT');
$waiter->responses;
$_->finish foreach $holder, $waiter, $other;
no_violations($observer);
$node->stop;
done_testing();
