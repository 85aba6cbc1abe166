
# Copyright (c) 2026, the pgnetlat authors

# Who holds up whom: the time that sessions wait for locks is the holder's, by
# what the holder did meanwhile and after which statement.  How long anybody has
# waited is known here as well: at least from when it was seen waiting, at most
# from when its query was sent, whatever else the machine was doing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('blockers', conf => 'max_prepared_transactions = 2');
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE TABLE t (i int PRIMARY KEY, v int)',
	'INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i');

sub client
{
	my ($name, %options) = @_;

	return PgNetlat::Client->connect($node, application_name => $name, %options);
}

# Lets a client run a query that waits for a lock; notes when it did not wait
# yet, and when it did.
sub blocked
{
	my ($client, $sql) = @_;

	$client->{asked_at} = now();
	$client->put(query($sql));
	die "$sql does not wait"
	  unless $observer->poll(
		sub {
			$observer->value(
				'SELECT cardinality(pg_blocking_pids(' . $client->pid . '))');
		});
	$client->{waits_since} = now();
	return $client;
}

# Its response has come.
sub released
{
	my ($client) = @_;

	$client->responses;
	$client->{done_at} = now();
	return;
}

# What was waited for an application, over all of its statements; together with
# between when it was read.
sub blocker
{
	my ($name) = @_;
	my $from = now();
	my @rows = $observer->blockers("application_name = '$name'");
	my %sum = (rows => scalar(@rows), read_from => $from, read_to => now());

	foreach my $row (@rows)
	{
		$sum{$_} += $row->{$_} foreach grep { /^blocked_/ } keys %$row;
	}
	return @rows ? \%sum : undef;
}

# Waits until it is known whom a session waits for.
sub root_of
{
	my ($client) = @_;

	return $observer->poll(
		sub { $observer->account($client->pid)->{blocked_by}; });
}

# The bounds of what some have waited: at a reading while they do, or in all.
sub at_least_waited
{
	my ($reading, @clients) = @_;
	my $sum = 0;

	$sum += $reading->{read_from} - $_->{waits_since} foreach @clients;
	return $sum - 0.1;
}

sub at_most_waited
{
	my ($reading, @clients) = @_;
	my $sum = 0;

	$sum += ($_->{done_at} // $reading->{read_to}) - $_->{asked_at} foreach @clients;
	return $sum + 0.1;
}

# The statement that has this identifier, as a session sees it.
sub queryid_of
{
	my ($client, $sql) = @_;

	return $observer->value('SELECT query_id FROM pg_stat_activity WHERE pid = ' . $client->pid);
}

# ---------------------------------------------------------------------------
# A holder that thinks, and two who wait, one behind the other
# ---------------------------------------------------------------------------

my $holder = client('thinks', tcp => 1);
my @victim = map { client("victim $_") } 1 .. 2;
$holder->run('BEGIN', 'UPDATE t SET v = 1 WHERE i = 1', 'SELECT 1');
$observer->await($holder->pid, sub { $_->{state} eq 'waiting in transaction' });
pause(100);
blocked($victim[0], 'UPDATE t SET v = 2 WHERE i = 1');
blocked($victim[1], 'UPDATE t SET v = 3 WHERE i = 1');
is(root_of($_), $holder->pid, 'it waits for the one that thinks') foreach @victim;
pause(1000);
my $row = blocker('thinks');
is($row->{rows}, 1, 'thinks: one row');
is($row->{blocked_sessions}, 2, 'two sessions wait');
cmp_ok($row->{blocked_time}, '>=', at_least_waited($row, @victim), 'for so long at least');
cmp_ok($row->{blocked_time}, '<=', at_most_waited($row, @victim), 'and at most');
is($row->{blocked_by_client_time} + $row->{blocked_by_other_time},
	$row->{blocked_time}, 'all of it because of the client');
is($row->{blocked_by_other_time}, 0, 'which is known');
($row) = $observer->blockers("application_name = 'thinks'");
is($row->{usename}, 'postgres', 'whose it is');
is($row->{client_addr}, '127.0.0.1', 'and where from');
is($row->{backend_type}, 'client backend', 'and what');
is($row->{queryid}, queryid_of($holder), 'after which statement');

my $account = $observer->account($victim[0]->pid);
cmp_ok($account->{lock_wait_time}, '>=', $account->{read_from} - $victim[0]->{waits_since} - 0.1,
	'in its own account it has waited as long');
cmp_ok($account->{lock_wait_time}, '<=', $account->{read_to} - $victim[0]->{asked_at} + 0.1,
	'and no longer');
my $sum = blocker('thinks')->{blocked_time};
$account = $observer->account($holder->pid);
cmp_ok($account->{blocking_time}, '>=', $sum, 'and the holder has held them up');
cmp_ok($account->{blocking_time}, '<=', blocker('thinks')->{blocked_time}, 'for that time');
is($account->{lock_wait_time}, 0, 'and waited for nobody');
is($account->{blocked_by}, undef, 'nor does it now');

$holder->run('COMMIT');
released($_) foreach @victim;
is($observer->account($victim[0]->pid)->{blocked_by}, undef, 'it waits no more');
$row = blocker('thinks');
is($row->{blocked_sessions}, 0, 'nobody waits any more');
is($row->{blocked_sessions_max}, 2, 'but two have');
cmp_ok($row->{blocked_time}, '<=', at_most_waited($row, @victim), 'no longer than they did');
cmp_ok($row->{blocked_time_max}, '<=', $row->{blocked_time}, 'the longest is one of them');
cmp_ok(2 * $row->{blocked_time_max}, '>=', $row->{blocked_time}, 'at least the half');

no_violations($observer);
$node->stop;
done_testing();
