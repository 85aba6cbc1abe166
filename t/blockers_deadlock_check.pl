
# Copyright (c) 2026, the pgnetlat authors

# A waiting session checks once for a deadlock, and shows another wait event
# meanwhile.  That is not a new wait, and its time counts once.  Sessions that
# read many locks again and again make the check long enough to be seen.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(sum0);

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	VICTIMS => 12,
	DEADLOCK_TIMEOUT => 500,
	READERS => 3,
	LOCKS => 60_000,
};

my ($node, $observer) = start_node('deadlock_check',
		conf => "max_locks_per_transaction = 1000\n"
	  . 'deadlock_timeout = '
	  . DEADLOCK_TIMEOUT);

my @readers =
  map { PgNetlat::Client->connect($node, application_name => "reader $_") }
  1 .. READERS;
my @victims =
  map { PgNetlat::Client->connect($node, application_name => "victim $_") }
  1 .. VICTIMS;
my $holder = PgNetlat::Client->connect($node, application_name => 'holder');

$observer->run(
		'SELECT count(pg_advisory_lock_shared(0, i)) FROM generate_series(1, '
	  . LOCKS
	  . ') i');
$holder->run('BEGIN', 'SELECT pg_advisory_xact_lock(1)');
$_->put(
	query(
		q{DO $$ BEGIN LOOP PERFORM count(*) FROM pg_lock_status(); END LOOP; END $$}
	)) foreach @readers;

foreach my $victim (@victims)
{
	$victim->{asked_at} = now();
	$victim->put(query('SELECT pg_advisory_xact_lock_shared(1)'));
}

# Which of them were seen while they checked for a deadlock.
my %seen;
my $until = now() + 4 * DEADLOCK_TIMEOUT;

while (now() < $until)
{
	$seen{$_} = 1
	  foreach split /\n/, $observer->value(
		q{SELECT string_agg(pid::text, E'\n') FROM pg_stat_activity
		  WHERE application_name LIKE 'victim%' AND wait_event_type IS DISTINCT FROM 'Lock'}
	  ) // '';
}
note(scalar(keys %seen) . ' of them were seen looking for a deadlock');
$observer->run('SELECT pg_cancel_backend(' . $_->pid . ')') foreach @readers;
$_->until('Z') foreach @readers;

my ($row) = @{
	$observer->poll(
		sub {
			my @rows = $observer->blockers(
				q{application_name = 'holder' AND blocked_sessions = }
				  . VICTIMS);
			return @rows ? \@rows : undef;
		})
};
my $read_at = now();
cmp_ok(
	$row->{blocked_time}, '<=',
	sum0(map { $read_at - $_->{asked_at} } @victims),
	'a wait with a deadlock check counts once');
cmp_ok(
	$row->{blocked_time}, '>=',
	VICTIMS * DEADLOCK_TIMEOUT,
	'the wait counts on after the deadlock check');
$holder->run('COMMIT');
$_->responses foreach @victims;
$observer->run('SELECT pg_advisory_unlock_all()');

no_violations($observer);
$node->stop;
done_testing();
