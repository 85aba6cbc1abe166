
# Copyright (c) 2026, the pgnetlat authors

# Statements that repeat, and those without an end.

use strict;
use warnings;

use PgNetlat::Figures;
use Test::More;

my @found;

my %loop = (
	qw(calls 10100  repeats 10000  network_time 20200  repeat_network_time 20000
	  in_xact_wait_time 20500  exec_time 1000));
my %looper = (
	qw(rtt 2  requests 10100  transactions 100  network_time 20200  exec_time 1000
	  in_xact_wait_time 20000));

sub loop
{
	my ($query, %row) = @_;

	statement(%loop, %row);
	group(%looper);
	session(
		pid => 10,
		application_name => 'other',
		query_id => 42,
		query => $query);
	return;
}
loop('SELECT * FROM child WHERE parent = $1');
@found = expect(
	'repeated statement',
	qr/^10000 of 10100 executions by app repeat .*, in all 21\.\d of 21\.2 s: SELECT \* FROM child WHERE parent = \$1$/,
	'N+1');
is($found[0]{queryid}, 42, 'N+1: the finding is about the statement');
is(scalar(@found), 1, 'N+1: the only finding')
  or diag(explain(\@found));
loop('SELECT * FROM child WHERE parent = $1');
my ($quoted) = diagnose();
my ($unquoted) = diagnose('false');
is( $quoted->{evidence},
	"$unquoted->{evidence}: SELECT * FROM child WHERE parent = \$1",
	'N+1, without texts: the evidence lacks the statement');
delete @$_{evidence} foreach $quoted, $unquoted;
is_deeply($unquoted, $quoted, 'N+1, without texts: all else is the same');
found();
loop('', queryid => '6000294846852582725');
@found = expect(
	'repeated statement',
	qr/^\d+ of \d+ executions by app repeat .* s$/,
	'a tracer that sets application_name');
like($found[0]{advice}, qr/comment/, 'a tracer has advice of its own');
loop('SELECT 1', calls => 60100, client_time => 900000);
expect('repeated statement',
	undef, 'N+1 beside single calls of another application');
statement(
	qw(calls 2000  repeats 15  network_time 4000  repeat_network_time 30));
group(
	qw(requests 2000  rtt 2  network_time 4000  exec_time 1000  client_time 30000
	  idle_time 20000));
healthy('hardly any repeats');
statement(
	qw(calls 4760  repeats 2370  network_time 4760  repeat_network_time 2370
	  in_xact_wait_time 4000  exec_time 10000));
group(
	qw(rtt 1  requests 9520  transactions 2390  network_time 9520  exec_time 40000
	  client_time 10000  in_xact_wait_time 7000));
healthy('two calls in each transaction');

# An N+1 in autocommit behind a transaction pooler on the server's host, measured
# with Django; and what looks similar.
sub hidden_loop
{
	my ($child, $parent, $group) = @_;
	my %child = (
		qw(calls 800  rows 800  repeats 760  exec_time 87  network_time 18  client_time 1163
		  repeat_network_time 17),
		%{ $child // {} });
	my %parent = (
		qw(queryid 43  calls 40  rows 800  exec_time 22  client_time 36),
		%{ $parent // {} });

	statement(%child);
	statement(%parent);
	group(
		rtt => 0.02,
		requests => $child{calls} + $parent{calls},
		network_time => $child{network_time},
		exec_time => $child{exec_time} + $parent{exec_time},
		client_time => $child{client_time} + $parent{client_time},
		%{ $group // {} });
	return;
}
hidden_loop();
@found = expect(
	'repeated statement',
	qr/^760 of 800 executions\b.* repeat an earlier one, for the rows of statement 43\. Each costs 0\.11 ms of server and 0\.90 ms of waiting /,
	'N+1 behind a pooler');
is( "$found[0]{subject_kind} $found[0]{queryid}",
	'statement 42',
	'N+1 behind a pooler: the finding is about the statement');
is(scalar(@found), 1, 'N+1 behind a pooler: the only finding');
near(
	$found[0]{lost_sessions},
	760 * (87 / 800 + 36 / 40) / 60000,
	'N+1 behind a pooler: what the server sees is lost');
is($found[0]{saving_sessions},
	undef, 'N+1 behind a pooler: the saving is not known');
hidden_loop({}, { calls => 100 });
healthy('N+1 behind a pooler: but its bursts are not for these rows');
hidden_loop({}, { rows => 2000 });
healthy('N+1 behind a pooler: but most rows are not asked for');
hidden_loop({ client_time => 9000 }, { client_time => 400 });
healthy('a client that computes something for each row');
hidden_loop({ network_time => 1, client_time => 20 });
healthy('a pipeline for the rows of a statement');

# pgbench through pgbouncer: 20 clients, of whose requests 5 % are for a list
my %hot = (
	qw(calls 9420  rows 9420  repeats 6344  exec_time 377  network_time 104  client_time 4199
	  repeat_network_time 70));
my %lists = (calls => 492, rows => 9840, exec_time => 39, client_time => 270);

hidden_loop(\%hot, \%lists);
healthy('single calls of many clients of a pooler');
hidden_loop(
	{ %hot, network_time => 9420, repeat_network_time => 6344 },
	{ %lists, network_time => 492 },
	{ rtt => 1, total_time => 200000 });
healthy('single calls of many clients of a pooler on another host');

# Pooled with names: only loops repeat, and waits are idle time.
my %pooled = (
	qw(calls 80000  rows 80000  repeats 30000  exec_time 8000  network_time 0  client_time 0
	  repeat_network_time 0));
my %pages = (calls => 4000, rows => 80000, client_time => 0);

hidden_loop(\%pooled, \%pages, { pooler_requests => 500 });
expect(
	'repeated statement',
	qr/\. Each costs 0\.10 ms of server and a wait of the pool, in all 3000 of 8000 ms/,
	'N+1 behind a pooler that names its clients');
hidden_loop(\%pooled, \%pages);
healthy('the same without a pooler\'s names');
hidden_loop(\%pooled, \%pages, { pooler_requests => 5, round_trips => 500 });
healthy('a pipeline behind a pooler that names its clients');

session(
	pid => 11,
	state => 'executing',
	qw(age 190  exec_time 60000  exec_cpu_time 59000),
	query => 'SELECT count(*) FROM a, b',
	query_id => 42);
group(exec_time => 60000, exec_cpu_time => 59000);
@found = expect(
	'long statement',
	qr/^It has been executing for 3 min, mostly on CPU\. Statement 42: SELECT count\(\*\) FROM a, b$/,
	'a statement without an end');
is($found[0]{pid}, 11, 'a long statement: the finding is about its session');
like($found[0]{advice}, qr/pg_cancel_backend\(11\)/,
	'a long statement: the advice has the command that cancels it');
session(
	pid => 11,
	state => 'executing',
	qw(age 190  exec_time 60000  exec_other_time 60000),
	wait_event => "'PgSleep'");
group(exec_time => 60000, exec_other_time => 60000);
healthy('a session that sleeps');

1;
