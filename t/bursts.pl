
# Copyright (c) 2026, the pgnetlat authors

# Repeats outside transaction blocks: the statements of a loop, but not those of
# requests that follow each other on a connection that many users share.  The
# machine decides how fast the client is: where that matters, no attempt may
# find more repeats than there are, and one of several must find all.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Test;
use Test::More;

my ($node, $observer) = start_node('bursts');

$observer->run(
	'CREATE ROLE app LOGIN',
	'CREATE TABLE t (i int PRIMARY KEY)',
	'INSERT INTO t SELECT generate_series(1, 1000)',
	'GRANT SELECT ON t TO app');
my $client = PgNetlat::Client->connect($node, user => 'app');

my $list = 'SELECT i FROM t ORDER BY i LIMIT 20';
my @item = (
	'SELECT i FROM t WHERE i = 1',
	'SELECT i + 1 FROM t WHERE i = 1',
	'SELECT i + 1, 2 FROM t WHERE i = 1');

# The repeats of the statement that was executed this often, after the client
# has done something.
sub repeats
{
	my ($calls, $do) = @_;

	$observer->run('SELECT pgnetlat_reset()');
	$client->begin_anew;
	$do->();
	$observer->settled($client);
	return $observer->value(
		"SELECT coalesce(sum(s.repeats), -1)
		   FROM pgnetlat_statements s JOIN pg_roles r ON r.oid = s.userid
		  WHERE r.rolname = 'app' AND s.calls = $calls");
}

# The most repeats in some attempts, each with this many executions.
sub most
{
	my ($all, $calls, $do) = @_;
	my $most = -1;

	for (1 .. 10)
	{
		my $found = repeats($calls, $do);

		$most = $found if $found > $most;
		last if $found >= $all;
	}
	return $most;
}

# ---------------------------------------------------------------------------
# Loops
# ---------------------------------------------------------------------------

is(most(19, 20, sub { $client->run($list, ($item[0]) x 20) }),
	19, 'a loop: one repeat for each row');
is(most(19, 25, sub { $client->run($list, ($item[0]) x 25) }),
	19, 'a loop: no more repeats than rows');
is( most(
		19, 20,
		sub {
			$client->run($list);
			foreach (1 .. 20)
			{
				$client->run($item[0]);
				pause(3);
			}
		}),
	19,
	'a loop of a slow client: one repeat for each row');

# all of them sent at once, so that they follow each other closely
is( repeats(
		60,
		sub {
			$client->put(query($item[0]) x 60);
			$client->responses(60);
		}),
	30,
	'a loop that no rows account for: half of it repeats');

# prepared anew each time
is( most(
		19, 20,
		sub {
			$client->run($list);
			foreach (1 .. 20)
			{
				$client->put(extended($item[0]), sync());
				$client->responses;
			}
		}),
	19,
	'a loop in the extended protocol: one repeat for each row');

# with what is no execution in between
is( most(
		19, 20,
		sub {
			$client->run($list);
			foreach (1 .. 20)
			{
				$client->run($item[0]);
				$client->put(close_('S', ''), sync());
				$client->responses;
			}
		}),
	19,
	'a loop with Close after each: one repeat for each row');

# with another application's statement in between, as through a pooler
is( most(
		19, 20,
		sub {
			$client->run($list);
			$client->run($item[0], $item[1], $item[2], $item[1])
			  foreach 1 .. 20;
		}),
	19,
	'a loop with other statements in between: one repeat for each row');

# In one request all of them repeat; the first of the next request does not.
is( repeats(
		10,
		sub {
			foreach (1 .. 2)
			{
				$client->put(parse('', $item[0]),
					(bind_('', ''), execute('', 0)) x 5, sync());
				$client->responses;
			}
		}),
	8,
	'within one request every execution but the first repeats');

# ---------------------------------------------------------------------------
# Requests of different users
# ---------------------------------------------------------------------------

is( repeats(
		100,
		sub {
			foreach (1 .. 100)
			{
				$client->run($item[0]);
				pause(rand(8)) if rand() < 0.8;
			}
		}),
	0,
	'single statements of many users do not repeat');
is(repeats(100, sub { $client->run(@item) foreach 1 .. 100 }),
	0, 'sequences of three statements, sent without pause, do not repeat');
is( repeats(
		50,
		sub {
			$client->run($list, @item[ 1, 2 ]) foreach 1 .. 50;
		}),
	0,
	'requests that begin with a list do not repeat');
is( repeats(
		30,
		sub {
			foreach (1 .. 30)
			{
				$client->run($list);
				pause(120);
				$client->run($item[0]);
			}
		}),
	0,
	'a statement much later than a list does not repeat');

is( repeats(
		9,
		sub {
			$client->run($list);
			pause(30), $client->run($item[0]) foreach 1 .. 4;
			pause(120);
			pause(30), $client->run($item[0]) foreach 1 .. 5;
		}),
	0,
	'a few common statements after a list do not repeat');

# ---------------------------------------------------------------------------
# In a transaction block
# ---------------------------------------------------------------------------

is( repeats(
		20, sub { $client->run('BEGIN', $list, ($item[0]) x 20, 'COMMIT') }),
	19,
	'in a block, everything executed before in it repeats');
is( repeats(
		10,
		sub {
			$client->run(
				'BEGIN',
				'DECLARE c CURSOR FOR SELECT i FROM t',
				('FETCH 10 FROM c') x 10, 'COMMIT');
		}),
	0,
	'FETCH is not a repeat');
is( repeats(
		10,
		sub {
			$client->run('BEGIN');
			$client->put(
				parse('', 'SELECT i FROM t LIMIT 100'),
				bind_('c', ''),
				(execute('c', 10), sync()) x 10);
			$client->responses(10);
			$client->run('COMMIT');
		}),
	-1,
	'a portal read in parts is not a repeat');

no_violations($observer);
done_testing();
