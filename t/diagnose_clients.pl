
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
	rtt => 0.01,
	sessions => 1,
	requests => 0,
	exec_time => 100,
	send_time => 58000,
	send_blocked_time => 58000,
	send_client_time => 58000,
	client_time => 2000,
	packets_sent => 1900,
	packets_received => 900,
	retransmits => 85,
	bytes_sent => 100e6);
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
# Repeated statements
# ---------------------------------------------------------------------------

# A connection pool of asyncpg, with its own commands between each two: nothing
# repeats, but there are as many executions as another statement has rows.
sub pooled_loop
{
	my (%child) = @_;

	statement(
		calls => 11190,
		rows => 11190,
		exec_time => 1100,
		network_time => 11190,
		%child);
	statement(
		queryid => 43,
		calls => 20,
		rows => 11180,
		exec_time => 100,
		network_time => 20);
	statement(
		queryid => 44,
		calls => 11210,
		exec_time => 300,
		network_time => 11210);
	group(
		rtt => 1,
		requests => 22420,
		network_time => 22420,
		exec_time => 1500,
		client_time => 3000,
		sessions => 10,
		application_name => 'importer');
	return;
}
pooled_loop();
@found = expect(
	'repeated statement',
	qr/^11170 of 11190 executions could be one with statement 43, as many as that has rows: 1 ms of round trip .*, by importer$/,
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

$node->stop;
done_testing();
