
# Copyright (c) 2026, the pgnetlat authors

# More holders than pgnetlat_blockers has room for: those for which others have
# waited least are evicted, their sums go to the evicted row, and holders for
# which sessions are waiting stay.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# Milliseconds: how much longer a wait may be counted than it was.  It counts
# from the tick before it, and ticks come late on a busy machine.
use constant LATE => 400;

# the fewest that can be set
my $max = 10;

my ($node, $observer) =
  start_node('full_blockers', conf => "pgnetlat.max_blockers = $max");

sub client { return PgNetlat::Client->named($node, @_); }

# A holder with a session that waits for it, and when that was seen.
sub block
{
	my ($number) = @_;
	my $holder = client("holder $number");
	my $victim = client("victim $number");

	$holder->run("SELECT pg_advisory_lock($number)");
	$victim->{asked_at} = now();
	$victim->put(query("SELECT pg_advisory_lock($number)"));
	$observer->poll(
		sub {
			my $account = $observer->account($victim->pid);

			$account && ($account->{blocked_by} // 0) == $holder->pid;
		}) or die "nobody waits for holder $number";
	return { holder => $holder, victim => $victim, number => $number };
}

sub release
{
	my ($pair) = @_;

	$pair->{holder}->run("SELECT pg_advisory_unlock($pair->{number})");
	$pair->{victim}->responses;
	$pair->{waited_at_most} = now() - $pair->{victim}->{asked_at};
	$_->finish foreach @$pair{qw(holder victim)};
	return;
}

# What is counted in all rows, and in the evicted row.
sub reading
{
	my ($info) = $observer->rows(
		'SELECT blockers, blockers_max, blockers_evicted FROM pgnetlat_info');
	my %reading = (%$info, rows => 0, blocked_time => 0, evicted_time => 0);

	foreach my $row ($observer->blockers('true'))
	{
		$reading{rows}++;
		$reading{blocked_time} += $row->{blocked_time};
		next if defined $row->{backend_type};
		is($row->{application_name},
			'(evicted)', 'the row of evicted holders has its name');
		$reading{evicted_time} += $row->{blocked_time};
	}
	return \%reading;
}

sub blocked_sessions
{
	return $observer->value(
		'SELECT sum(blocked_sessions) FROM pgnetlat_blockers');
}

# ---------------------------------------------------------------------------
# One after the other; one of them for as long as all the others
# ---------------------------------------------------------------------------

my $reading = reading();
is_deeply(
	$reading,
	{
		blockers => 0,
		blockers_max => $max,
		blockers_evicted => 0,
		rows => 0,
		blocked_time => 0,
		evicted_time => 0
	},
	'pgnetlat_blockers is empty at first');

my $long = block(0);
my @past;
my $short = 0;
my $waited_at_most = 0;
my $previous = $reading;

foreach my $number (1 .. 2 * $max)
{
	# for some of them longer than for most of the others
	if ($number == $max / 2)
	{
		@past = map { block($_) } 100 .. 103;
		pause(2000);
		release($_) foreach @past;
		$waited_at_most += $_->{waited_at_most} foreach @past;
	}

	my $pair = block($number);

	release($pair);
	$waited_at_most += $pair->{waited_at_most};
	$short++ if $pair->{waited_at_most} < 1000;
	$reading = reading();
	cmp_ok(
		$reading->{blocked_time},
		'>',
		$previous->{blocked_time},
		"holder $number: the wait is in the sum over all rows");
	cmp_ok(
		$reading->{evicted_time},
		'>=',
		$previous->{evicted_time},
		"holder $number: the sum of evicted rows does not fall");
	cmp_ok($reading->{blockers}, '<=', $max,
		"holder $number: pgnetlat_blockers has at most max_blockers rows");
	cmp_ok(
		$reading->{blockers_evicted},
		'>=',
		$previous->{blockers_evicted},
		"holder $number: the number of evictions does not fall");
	$previous = $reading;
}

# Each holder has its own row, and another one if the sampler looks while it
# unlocks, and the other session has not been woken up yet.
my $holders = 2 * $max + 1 + @past;
my $counted = $reading->{blockers} + $reading->{blockers_evicted};
cmp_ok(
	$reading->{blockers_evicted},
	'>=',
	$max + 1 + @past,
	'most holders were evicted');
cmp_ok($counted, '>=', $holders,
	'every holder is listed or counted as evicted');
cmp_ok(
	$counted, '<=',
	2 * $holders,
	'evicted holders are not counted again and again');
SKIP:
{
	skip 'this machine is too slow: all waits were long', 1
	  if $short < 2 * $max;
	my @stays = $observer->blockers(q{application_name LIKE 'holder 10_'});
	is(scalar @stays,
		scalar @past, 'holders with longer waits are not evicted');
}
cmp_ok($reading->{evicted_time}, '>', 0, 'the evicted row has waits');
my ($row) = $observer->blockers(q{application_name = 'holder 0'});
is($row->{blocked_sessions}, 1, 'a holder for which a session waits stays');
my $read = now();
cmp_ok(
	$row->{blocked_time}, '<=',
	$read - $long->{victim}->{asked_at} + LATE,
	'blocked_time of the holder that stays is not too long');
release($long);
$waited_at_most += $long->{waited_at_most};
cmp_ok(
	reading()->{blocked_time},
	'<=',
	$waited_at_most + LATE * (2 * $max + 1 + @past),
	'the sum over all rows is not too long');

# ---------------------------------------------------------------------------
# All at once: nobody may go
# ---------------------------------------------------------------------------

$observer->run('SELECT pgnetlat_reset()');
is(reading()->{blockers}, 0, 'a reset empties pgnetlat_blockers');
is(reading()->{blockers_evicted}, 0,
	'a reset zeroes the number of evictions');

my @pairs = map { block($_) } 1 .. $max + 2;
$observer->poll(sub { blocked_sessions() == $max + 2 });
$reading = reading();
is($reading->{blockers}, $max,
	'more holders than there is room for: the table is full');
is($reading->{blockers_evicted},
	0, 'more holders than there is room for: none is evicted');
is(blocked_sessions(), $max + 2,
	'more holders than there is room for: all waiting sessions are counted');
is( $observer->value(
		q{SELECT blocked_sessions FROM pgnetlat_blockers WHERE backend_type IS NULL}
	),
	2,
	'more holders than there is room for: two sessions count as evicted');
ok( $observer->poll(
		sub {
			reading()->{evicted_time} >= $reading->{evicted_time} + 2 * 300;
		}),
	'the evicted row grows while they wait');
is(reading()->{blockers_evicted}, 0, 'none is evicted while they wait');

# Holders without room get a row when others are evicted, but no part may exceed
# the waits of its row.
release($_) foreach splice(@pairs, 0, 4);
$observer->poll(
	sub {
		$observer->value(
			q{SELECT count(*) FROM pgnetlat_blockers
			  WHERE blocked_sessions > 0 AND blocked_by_client_time > 0}
		) >= @pairs;
	}) or die 'the evicted row has no identity';
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_blockers
		  WHERE blocked_time + 0.001 < blocked_by_exec_time + blocked_by_send_time +
		        blocked_by_recv_time + blocked_by_network_time + blocked_by_client_time}
	),
	0,
	'no part exceeds blocked_time after holders got room');
release($_) foreach @pairs;
ok( $observer->poll(sub { blocked_sessions() == 0 }),
	'no session waits after all locks were released');
no_violations($observer);
my $rows =
  $observer->value(
	'SELECT round(sum(blocked_time)::numeric, 3) FROM pgnetlat_blockers');
my $offset = log_size($node);
$node->stop('fast');
$node->start;
unlike(server_log($node, $offset),
	qr/ignoring/, 'the saved file is loaded after a restart');
$observer = PgNetlat::Observer->connect($node);
is( $observer->value(
		'SELECT round(sum(blocked_time)::numeric, 3) FROM pgnetlat_blockers'),
	$rows,
	'blocked_time is the same after a restart');
$node->stop;
done_testing();
