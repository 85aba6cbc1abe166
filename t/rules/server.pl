
# Copyright (c) 2026, the pgnetlat authors

# What the server waits for, too few CPUs, and connections.

use strict;
use warnings;

use PgNetlat::Figures;
use Test::More;

my @found;

foreach my $cause (
	[ 'CPU time' => 'exec_cpu_time', 0.5 ],
	[ 'I/O' => 'exec_io_time', 0.5 ],
	[ 'waiting for a standby' => 'exec_replication_time', 1 ],
	[ 'waiting for another server' => 'exec_remote_time' ],
	[ 'other waits' => 'exec_other_time' ])
{
	group(
		qw(requests 1000  exec_time 30000),
		$cause->[1] => 24000,
		client_time => 20000);
	@found =
	  expect('server-bound', qr/^24 of 30 ms per request are $cause->[0]$/,
		$cause->[0]);
	defined $cause->[2]
	  ? near(
		$found[0]{saving_sessions},
		0.4 * $cause->[2],
		"$cause->[0]: saving_sessions is what could be saved")
	  : is($found[0]{saving_sessions},
		undef, "$cause->[0]: saving_sessions is not known");
}
group(requests => 40, exec_time => 29000, exec_cpu_time => 29000);
healthy('a nightly batch');

my %starved = (
	qw(requests 1000  exec_time 20000  exec_cpu_time 18000  exec_lock_time 1000
	  exec_unsampled_time 1000  run_queue_time 15000));
group(%starved);
@found =
  expect('starved',
	qr/^It waited for a CPU for 15 of 19 s, 15 of 19 ms per request$/,
	'too few CPUs');
is($found[0]{subject_kind},
	'server', 'too few CPUs: the finding is about the server');
group(%starved);
group(
	application_name => 'waits',
	qw(requests 100  exec_time 900000  exec_lock_time 100  exec_cpu_time 800000
	  client_time 1e6));
@found = found();
is( join(', ',
		map  { "$_->{application_name} $_->{verdict}" }
		grep { $_->{verdict} eq 'starved' } @found),
	'app starved',
	'too few CPUs for one group');
group(exec_time => 34000, exec_cpu_time => 34000, run_queue_time => 30600);
expect(
	'starved',
	qr/waited for a CPU for 30\.6 of 34 s$/,
	'a statement that has not completed');
group(
	qw(requests 453000  exec_time 5600  exec_cpu_time 5300  exec_unsampled_time 300
	  client_time 239000  run_queue_time 163600  run_queue_wait_time 163100  sessions 16)
);
expect(
	'starved',
	qr/waited for a CPU for 164 of 169 s, 0\.36 of 0\.37 ms per request$/,
	'too few CPUs for short requests');

# measured with TPC-B by 8 clients, beside 8 other programs that compute, and with
# transactions of five requests before all other programs, in real-time priority
my %tpcb_starved = (
	qw(requests 313584  transactions 44799  exec_time 16532  exec_cpu_time 8786
	  exec_lock_time 6897  exec_unsampled_time 113  send_time 3723  network_time 1634
	  client_time 74640  in_xact_wait_time 64900  run_queue_time 35389
	  run_queue_wait_time 32689  rtt 0.006  sessions 8));
group(%tpcb_starved);
expect(
	'starved',
	qr/waited for a CPU for 35\.4 of 41\.6 s, 0\.11 of 0\.13 ms per request$/,
	'too few CPUs for short requests of transactions');
group(%tpcb_starved, client_time => 140000);
healthy('short requests of transactions that lack a fifth of their time');
group(
	qw(requests 489036  transactions 97807  exec_time 8152  exec_cpu_time 4012
	  exec_unsampled_time 3041  send_time 2681  network_time 2456  client_time 23071
	  in_xact_wait_time 20260  run_queue_time 15024  run_queue_wait_time 13172  rtt 0.006
	  sessions 8));
healthy('clients without pauses, which take processors from one another');
group(
	qw(requests 49000  rtt 0.5  exec_time 1900  exec_cpu_time 1800  exec_unsampled_time 100
	  network_time 25600  client_time 26400  run_queue_time 11000  run_queue_wait_time 10600
	  sessions 2));
healthy('short requests on a machine that is busy');
group(
	application_name => 'idle',
	qw(requests 140  exec_time 35  run_queue_time 1330  idle_time 8e6  sessions 140)
);
healthy('idle connections, for which the machine had no time');
group(
	application_name => 'idle',
	qw(requests 140  exec_time 35  idle_time 8e6  sessions 140  connections 140
	  connect_time 60000));
healthy('idle connections that were made under load');

group(
	qw(requests 300  exec_time 300  connections 200  connect_time 10000  ended_sessions 199
	  rtt 5));
@found = expect(
	'reconnects',
	qr/^200 connections took 60 ms each to set up, in all 12 of 12\.3 s, for 300 requests$/,
	'clients that reconnect');
add('p', sessions => 90, pool_size => 3, window_time => 60000);
@found = expect(
	'too many connections',
	qr/^90 of 100 connections are held\.  A pool of 3 would/,
	'connections that are not needed');

1;
