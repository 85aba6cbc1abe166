
# Copyright (c) 2026, the pgnetlat authors

# Clients that think, in transactions and outside.

use strict;
use warnings;

use PgNetlat::Figures;
use Test::More;

my @found;

my %thinks = (
	qw(requests 30  transactions 10  exec_time 100  client_time 20000  in_xact_wait_time 20000
	  idle_time 39000));
group(%thinks);
session(%thinks, pid => 7, state => 'waiting in transaction', age => 3);
@found = expect(
	'idle in transaction',
	qr/^Its client thinks for 1818 of \d+ ms of each transaction, which holds locks that nobody waits for\. It has been idle in transaction for 3\.\d s$/,
	'a client that thinks');
is($found[0]{pid}, 7,
	'a client that thinks: the finding is about one session');
like(
	$found[0]{advice},
	qr/^Move application work outside the transaction/,
	'a client that thinks: the advice is to move work out');

# half of a pool's connections were given back in a transaction
my %leak = (
	application_name => 'leak',
	qw(requests 90  transactions 30  client_time 60000  in_xact_wait_time 200)
);
my %leaked = (
	%leak,
	qw(requests 0  transactions 0  in_xact_wait_time 60000),
	state => 'waiting in transaction',
	age => 75);
session(%leak, pid => 30 + $_)   foreach 1 .. 4;
session(%leaked, pid => 40 + $_) foreach 1 .. 4;
group(%leak,
	qw(sessions 8  requests 360  transactions 120  client_time 480000  in_xact_wait_time 240800)
);
expect(
	'idle in transaction',
	qr/^Its client thinks for 1942 of .*\. One session has been idle in transaction for 7\d s$/,
	'transactions that a pool has leaked');

my %short = (
	qw(requests 2000  transactions 1000  exec_time 1000  client_time 58000
	  in_xact_wait_time 57000));
group(%short);
@found = expect(
	'client-bound',
	qr/^The client thinks [\d.]+ of [\d.]+ ms per request in transactions, and the server takes 0\.50 ms\. Its locks block nobody$/,
	'a client that thinks less, all the time');
like(
	$found[0]{advice},
	qr/move its work outside the transaction/,
	'a client that thinks less, all the time: the advice is to move work out'
);
like(
	$found[0]{advice},
	qr/Exception: short jobs of a queue worker whose locks block nobody\.  Even then, VACUUM/,
	'a client that thinks less, all the time: the advice is about queues, too'
);
group(%short);
session(%short, pid => 7, blocking_time => 2000);
@found = grep { $_->{verdict} eq 'client-bound' } found();
like(
	$found[0]{evidence},
	qr/the server takes 0\.50 ms$/,
	'a client for which others wait: the evidence does not say that nobody waits'
);
group(requests => 20000, exec_time => 2000, client_time => 57500);
expect(
	'client-bound',
	qr/^The client thinks 2\.88 of/,
	'a loop of one connection');

# each has locked a row and thought, and now waits; pid 500 blocks all the others
sub chain
{
	my ($sessions) = @_;
	my %link = (
		application_name => 'chain',
		qw(requests 2  transactions 0  exec_time 20100  exec_lock_time 20000  client_time 3000
		  in_xact_wait_time 3000));

	session(
		%link,
		pid => 500 + $_,
		state => 'executing',
		blocked_by => 500) foreach 1 .. $sessions;
	session(
		%link,
		qw(pid 500  exec_time 100  exec_lock_time 0  client_time 23000  in_xact_wait_time 23000),
		state => 'waiting in transaction',
		age => 20,
		blocking_time => 20000 * $sessions);
	group(
		%link,
		sessions => 1 + $sessions,
		requests => 2 * $sessions,
		exec_time => 20100 * $sessions,
		exec_lock_time => 20000 * $sessions,
		client_time => 23000 + 3000 * $sessions,
		in_xact_wait_time => 23000 + 3000 * $sessions);
	return;
}
chain(300);
@found = expect(
	'blocks others',
	qr/^300 sessions of chain are blocked now \(6000 s lost so far\)/,
	'a chain of lock waits');
is($found[0]{pid}, 500, 'a chain of lock waits: the finding names the root');
is(scalar(@found), 2, 'a chain of lock waits: all others have one finding')
  or diag(explain([ @found[ 0 .. 3 ] ]));
like(
	$found[1]{evidence},
	qr/^300 sessions have this problem\. The worst one is pid 501: Its client thinks for 3 of 23\.1 s /,
	'a chain of lock waits: that finding has their number');
is( "$found[1]{subject_kind} $found[1]{subject}",
	'client chain',
	'a chain of lock waits: that finding is about the group');
near(
	$found[1]{lost_sessions},
	300 * 3 / 60,
	'a chain of lock waits: lost_sessions is a sum');
chain(3);
@found = found();
is( join(' ', map { $_->{pid} // 'none' } @found),
	'500 501 502 503',
	'a short chain of lock waits: each session has a finding');

# healthy ones
group(requests => 1500, exec_time => 500, client_time => 59400);
healthy('an insert each 40 ms');
group(
	qw(requests 1000  transactions 200  exec_time 500  client_time 11000
	  in_xact_wait_time 10000  idle_time 48000));
healthy('pages with 50 ms of thinking');
group(
	qw(requests 4000  transactions 1000  exec_time 4000  client_time 30000
	  in_xact_wait_time 1000  idle_time 400000  sessions 8));
healthy('a pool of web connections');

1;
