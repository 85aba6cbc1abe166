
# Copyright (c) 2026, the pgnetlat authors

# Outages over injected figures: three sessions that get nothing done for half a minute,
# whatever they wait for, in groups that have made few requests and in groups that have
# made many.  None is "no problem found", and the finding names the group.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Figures;
use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

my ($node, $observer) = start_node('outages');

use_figures($observer);

# What each session has done in the window, beside its requests; "wait" is its wait event.
my $lost = 30000;
my %outage = (
	lock => {
		exec_time => $lost,
		exec_lock_time => $lost,
		state => 'executing',
		wait => "'Lock'"
	},
	standby => {
		exec_time => $lost,
		exec_replication_time => $lost,
		state => 'executing',
		wait => "'IPC'"
	},
	remote => {
		exec_time => $lost,
		exec_remote_time => $lost,
		state => 'executing',
		wait => "'Extension'"
	},
	'I/O' => {
		exec_time => $lost,
		exec_io_time => $lost,
		state => 'executing',
		wait => "'IO'"
	},
	CPU => {
		exec_time => $lost,
		exec_cpu_time => $lost,
		state => 'executing',
		wait => 'NULL'
	},
	'inside the server' => {
		exec_time => $lost,
		exec_other_time => $lost,
		state => 'executing',
		wait => "'LWLock'"
	},
	'a reader' => {
		send_time => $lost,
		send_blocked_time => $lost,
		send_client_time => $lost,
		bytes_sent => 1000000,
		state => 'sending',
		wait => "'Client'"
	},
	'the path' => {
		send_time => $lost,
		send_blocked_time => $lost,
		bytes_sent => 1000000,
		rtt => 20,
		state => 'sending',
		wait => "'Client'"
	},
	'a loader' => {
		recv_time => $lost,
		state => 'receiving',
		wait => "'Client'"
	},
	'a client in its transaction' => {
		client_time => $lost,
		in_xact_wait_time => $lost,
		state => 'waiting in transaction',
		wait => "'Client'"
	});

foreach my $what (sort keys %outage)
{
	foreach my $requests (1, 120)
	{
		my $name =
			"waiting for $what, "
		  . ($requests > 1 ? 'many' : 'few')
		  . ' requests';
		my %row = %{ $outage{$what} };
		my $wait = delete $row{wait};
		my $state = delete $row{state};

		$row{exec_time} //= 0;
		$row{exec_time} += $requests;
		group(
			(map { $_ => $_ eq 'rtt' ? $row{$_} : 3 * $row{$_} } keys %row),
			sessions => 3,
			requests => 3 * $requests,
			application_name => 'shop');
		session(
			%row,
			requests => $requests,
			application_name => 'shop',
			state => $state,
			age => 30,
			pid => 200 + $_) foreach 1 .. 3;
		$observer->run(
			"UPDATE figures.activity SET wait_event_type = $wait, wait_event = $wait WHERE pid > 200"
		);
		my ($first) = found();
		isnt($first->{verdict}, 'no problem found', "$name: not green")
		  or next;
		like($first->{severity}, qr/^(outage|loss)$/, "$name: it is no note")
		  or diag(explain($first));
		is($first->{application_name}, 'shop', "$name: the group is named");
		note(
			"$name: $first->{severity}, $first->{verdict}: $first->{evidence}"
		);
	}
}

# Waits for a disk or for another server, before they have cost much: who gets nothing done
# is not overlooked, and one session alone may just have a long job.
my %away = (
	'I/O' => [ 'exec_io_time', 'IO', 'DataFileRead' ],
	'another server' => [ 'exec_remote_time', 'Extension', 'Extension' ]);
foreach my $what (sort keys %away)
{
	my ($part, $type, $event) = @{ $away{$what} };

	foreach my $sessions (1, 2)
	{
		my %row = (requests => 1, exec_time => 8000, $part => 8000);

		group(
			(map { $_ => $sessions * $row{$_} } keys %row),
			sessions => $sessions,
			application_name => 'shop');
		session(
			%row,
			application_name => 'shop',
			state => 'executing',
			age => 8,
			pid => 200 + $_) foreach 1 .. $sessions;
		$observer->run(
			"UPDATE figures.activity SET wait_event_type = '$type', wait_event = '$event' WHERE pid > 200"
		);
		my ($first) = found();
		is( "$first->{verdict}, $first->{severity}",
			'stalled, ' . ($sessions > 1 ? 'loss' : 'note'),
			"$sessions waiting for $what for eight seconds");
		like(
			$first->{evidence},
			qr/for \Q$what\E: $sessions x $type:/,
			"$sessions waiting for $what: the evidence");
	}
}

# a report that is seen in a short wait, which is no outage
group(requests => 1, exec_time => 58000, exec_cpu_time => 57000);
session(
	requests => 1,
	exec_time => 58000,
	exec_cpu_time => 57000,
	exec_other_time => 500,
	state => 'executing',
	age => 58,
	pid => 201);
$observer->run(
	"UPDATE figures.activity SET wait_event_type = 'LWLock', wait_event = 'BufferMapping'"
);
is( join(' ', grep { $_ ne 'note' } map { $_->{severity} // 'none' } found()),
	'',
	'a report that is seen in a short wait: a note at most');

no_violations($observer);
$node->stop;
done_testing();
