
# Copyright (c) 2026, the pgnetlat authors

# The sampler looks at quiet sessions now and then, and sleeps while there are
# no active ones.  No sample may get lost by that.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(max min);
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

# More slots than one word of bits has, and most of them free.
my $node = new_node('quiet', conf => "max_connections = 1000\n");

$node->start;
my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat', 'CREATE TABLE locked ()');
my @idle = map { PgNetlat::Client->connect($node) } 1 .. 70;
my $client = $idle[0];

sub ticks
{
	return $observer->value('SELECT sampler_ticks FROM pgnetlat_info');
}

# What was sampled of a session's time, in which "condition" holds.
sub sampled
{
	my ($pid, $condition) = @_;

	return $observer->value(
		"SELECT coalesce(sum(time), 0) FROM pgnetlat_waits
		WHERE pid = $pid AND $condition");
}

# Runs a few rounds, and again if the machine has spoilt them: does a value get
# between the two bounds?
sub between
{
	my ($low, $high, $round, $name) = @_;
	my @found;

	for (1 .. 4)
	{
		my $found = $round->();

		return pass($name) if $found >= $low and $found <= $high;
		push @found, $found;
	}
	return fail("$name: " . join(', ', @found) . ", not from $low to $high");
}

# ---------------------------------------------------------------------------
# Nobody does anything
# ---------------------------------------------------------------------------

# of 100 ticks a second; the observer's own queries are between
between(
	0, 0.2,
	sub {
		my $before = ticks();
		my $paused = pause(2000);

		return (ticks() - $before) / ($paused / 10);
	},
	'the sampler sleeps while all sessions are idle');

ok( $observer->poll(
		sub {
			my ($rows) = $observer->rows(
				q{SELECT count(*) AS count, min(sampled / total_time) AS least
				  FROM (SELECT total_time, (SELECT sum(time) FROM pgnetlat_waits AS w
				                            WHERE w.pid = s.pid) AS sampled
				        FROM pgnetlat_sessions AS s) AS sessions});

			return
				 $rows->{count} == 71
			  && defined $rows->{least}
			  && $rows->{least} > 0.8;
		}),
	'quiet sessions are sampled for nearly all of their time');
between(
	0.9, 1.1,
	sub {
		return $observer->value(
			q{SELECT sum(time) / 10 / sum(samples) FROM pgnetlat_waits WHERE state <> 'executing'}
		);
	},
	'quiet sessions have as many samples as if sampled at each tick');

# ---------------------------------------------------------------------------
# An exchange behind a pause, shorter than the looks at quiet sessions are apart
# ---------------------------------------------------------------------------

my $asleep = q{wait_event = 'PgSleep' AND state = 'executing'};

between(
	0.75, 1.35,
	sub {
		my $before = sampled($client->pid, $asleep);
		my $account = $observer->account($client->pid);

		foreach (1 .. 20)
		{
			pause(200 + rand(100));
			$client->run('SELECT pg_sleep(0.06)');
		}
		pause(100);
		return (sampled($client->pid, $asleep) - $before) /
		  ($observer->account($client->pid)->{exec_time} -
			  $account->{exec_time});
	},
	'what a session does is sampled from its beginning');

$client->run('CREATE TEMP TABLE copied (t text)');
between(
	0.75, 1.35,
	sub {
		my $account = $observer->account($client->pid);
		my $known = 0;

		foreach (1 .. 10)
		{
			pause(200 + rand(100));
			$client->put(query('COPY copied FROM STDIN'));
			$client->until('G');

			# behind the first data, what is missing shows to the sampler only
			$client->put(copy_data("x\n"));
			$known += pause(60);
			$client->put(copy_done());
			$client->responses;
		}
		return ($observer->account($client->pid)->{recv_time} -
			  $account->{recv_time}) / $known;
	},
	'the wait for COPY data is sampled from its beginning');

# ---------------------------------------------------------------------------
# A lock for which a query waits before anybody has heard of it
# ---------------------------------------------------------------------------

my $locker = $idle[1];

$locker->run('BEGIN', 'LOCK TABLE locked');
pause(100);
$client->put(query('SELECT * FROM locked'));
ok( $observer->poll(
		sub {
			sampled($client->pid,
				q{wait_event_type = 'Lock' AND state = 'executing'}) > 500;
		}),
	'a lock wait in parse analysis is found');
$locker->run('COMMIT');
$client->responses;

between(
	0.85, 1.15,
	sub {
		my $before = sampled($client->pid, q{wait_event_type = 'Lock'});
		my $account = $observer->account($client->pid);

		foreach (1 .. 5)
		{
			$locker->run('BEGIN', 'LOCK TABLE locked');
			pause(300 + rand(100));
			$client->put(query('SELECT * FROM locked'));
			pause(400);
			$locker->run('COMMIT');
			$client->responses;
		}
		pause(100);
		return (sampled($client->pid, q{wait_event_type = 'Lock'}) - $before)
		  / ($observer->account($client->pid)->{exec_time} -
			  $account->{exec_time});
	},
	'a lock wait in parse analysis is sampled from its beginning');

# ---------------------------------------------------------------------------
# A wait that gets idle while nobody looks, and a reset in it
# ---------------------------------------------------------------------------

$client->run(q{SET pgnetlat.idle_threshold = '300ms'});
between(
	0.9, 1.1,
	sub {
		my $before = sampled($client->pid, q{state = 'waiting'});

		foreach (1 .. 5)
		{
			$client->run('SELECT 1');
			pause(500 + rand(200));
		}
		return (sampled($client->pid, q{state = 'waiting'}) - $before) /
		  (5 * 300);
	},
	'a wait is idle from the threshold on');

between(
	-500, 30,
	sub {
		my $excess = -500;

		foreach (1 .. 8)
		{
			pause(100 + rand(150));
			$observer->value(
				'SELECT pgnetlat_reset_session(' . $client->pid . ')');
			ok($observer->poll(sub { sampled($client->pid, 'true') > 0; }),
				'a session is sampled after its reset');
			my ($both) = $observer->rows(
				'SELECT sum(time) AS sampled, min(s.total_time) AS total_time
				 FROM pgnetlat_sessions AS s JOIN pgnetlat_waits AS w USING (pid)
				 WHERE pid = ' . $client->pid);

			$excess = max($excess, $both->{sampled} - $both->{total_time});
		}
		return $excess;
	},
	'nothing before the reset is sampled');

# ---------------------------------------------------------------------------
# Nobody is there; then somebody comes
# ---------------------------------------------------------------------------

$_->finish foreach @idle;
ok( $observer->poll(
		sub {
			$observer->value('SELECT count(*) FROM pgnetlat_sessions') == 1;
		}),
	'the other sessions have left');
between(
	0.75, 1.35,
	sub {
		my $known = 0;
		my $found = 0;

		foreach (1 .. 10)
		{
			pause(300 + rand(100));
			my $new = PgNetlat::Client->connect($node);

			$new->run('SELECT pg_sleep(0.06)');
			pause(30);
			$known += $observer->account($new->pid)->{exec_time};
			$found += sampled($new->pid, $asleep);
			$new->finish;
		}
		return $found / $known;
	},
	'a new session is sampled from its beginning');

is($observer->value('SELECT sampler_errors FROM pgnetlat_info'),
	0, 'the sampler has met no error');
no_violations($observer);
$node->stop;
done_testing();
