
# Copyright (c) 2026, the pgnetlat authors

# Paths: long, lossy, narrow; and clients that do not read or send.

use strict;
use warnings;

use PgNetlat::Figures;
use Test::More;

my @found;

my %chatty = (
	qw(rtt 1.9  requests 2100  transactions 50  network_time 3990  exec_time 750
	  in_xact_wait_time 3900));
group(%chatty);
statement(calls => 2000, network_time => 3900);
session(
	pid => 8,
	application_name => 'other',
	query_id => 42,
	query => 'SELECT a FROM b');
@found = expect(
	'chatty',
	qr/^42 round trips per transaction, 1\.90 ms each, take 79\.8 of 94\.8 ms\. Statement 42: SELECT a FROM b$/,
	'42 round trips');
is(scalar(@found), 1, '42 round trips: the only finding');
near($found[0]{lost_sessions},
	3.99 / 60, '42 round trips: lost_sessions is the network time');
near(
	$found[0]{saving_sessions},
	3.99 / 60 * 40 / 42,
	'42 round trips: all but two can be saved');
group(%chatty, application_name => 'pg_dump');
@found = expect('chatty', undef, 'pg_dump');
like(
	$found[0]{advice},
	qr/on or near the server/,
	'pg_dump: the advice is to run it near the server');
statement(
	qw(calls 2000  repeats 1950  network_time 3900  repeat_network_time 3800
	  in_xact_wait_time 3900));
group(%chatty, application_name => 'pg_dump');
@found = expect('chatty', undef, 'a query of pg_dump for each table');
is(scalar(@found), 1, 'a query of pg_dump for each table: the only finding');
group(%chatty, statements => 50);
@found = expect('chatty', qr/Most fetch further rows/, 'few statements');
like($found[0]{advice}, qr/fetch size/,
	'few statements: the advice names the fetch size');

my %far = (
	qw(rtt 10  requests 5000  network_time 50000  exec_time 2000  client_time 3000)
);
group(%far);
@found =
  expect('network-bound',
	qr/^1 round trip per transaction, 10 ms each, takes 10 of 11 ms$/,
	'far away');
group(%far, network_time => 49990);
expect(
	'network-bound',
	qr/^1 round trip per transaction/,
	'hardly less than one round trip');
near(
	$found[0]{saving_share},
	0.95 * 50 / 55,
	'far away: saving_share is nearly all network time');
group(
	qw(rtt 10  requests 600  network_time 6000  exec_time 300  client_time 53000)
);
healthy('a client that asks each 100 ms');
group(
	qw(rtt 10  requests 160  transactions 40  network_time 1600  exec_time 100  idle_time 58000
	  in_xact_wait_time 1200));
healthy('a worker that LISTENs');
group(
	qw(rtt 10  requests 180  transactions 60  statements 6000  network_time 1800  exec_time 900
	  idle_time 57000));
healthy('executemany once a second');
group(%far, rtt => 2.87);
session(%far, pid => 9, rtt => 0.5);
healthy('one measurement under load');

my %lossy = (
	qw(rtt 20  requests 1000  network_time 26600  exec_time 500  client_time 12000
	  retransmits 30  packets_sent 1000  packets_received 1000));
group(%lossy);
@found = expect(
	'lossy path',
	qr/^30 of 1000 packets were sent again\. Responses took 6600 ms longer than the round trips, and requests about 6600 ms$/,
	'a path that loses packets');
is(scalar(@found), 1, 'a path that loses packets: the only finding');
near($found[0]{lost_sessions},
	13.2 / 60,
	'a path that loses packets: lost_sessions is of both directions');
group(
	%lossy,
	qw(requests 800  network_time 60000  client_time 20000  retransmits 390  packets_sent 12000
	  packets_received 3800  bytes_received 64000  bytes_sent 15e6));
expect(
	'lossy path',
	qr/^390 of 12000 packets \(15 MB at 0\.25 MB\/s\) were sent again\. Responses took 44 s longer than the round trips, and requests about 2933 ms$/,
	'a path that loses packets of large responses');
group(
	%lossy,
	qw(requests 43  network_time 21800  client_time 4222  send_time 187  send_blocked_time 180
	  bytes_sent 22e6  retransmits 260  packets_sent 15166));
@found = expect(
	'lossy path',
	qr/ \(22 MB at 1\.00 MB\/s\) were sent again\./,
	'a slow link that drops packets');
like(
	$found[0]{advice},
	qr/^Check whether clients with small results lose packets .* If not, .*: send less .*  If they do, have the path examined/,
	'a slow link that drops packets: the advice tells which it is');

# measured with pages of 20 kB, over 2 Mbit/s and 50 ms, and over 10 Mbit/s and 20 ms
my %narrow = (
	qw(rtt 50.58  requests 89  exec_time 24  send_time 10  network_time 11892  client_time 254
	  packets_sent 1323  bytes_sent 1770420));
group(%narrow);
expect(
	'narrow path',
	qr/^The network limited sending for 7\.39 of 11\.9 s\. 1\.77 MB went at 0\.24 MB\/s$/,
	'large results over a slow link');
group(%narrow, requests => 700, rtt => 5);
healthy('short results over a path whose length varies');
group(
	qw(rtt 20.18  requests 200  exec_time 49  send_time 11  network_time 11679  client_time 425
	  retransmits 60  packets_sent 3048  packets_received 1730  bytes_received 10637
	  bytes_sent 4003518));
@found = expect('lossy path', undef,
	'a slow link that drops packets of results that fit into buffers');
like(
	$found[0]{advice},
	qr/send less/,
	'a slow link that drops packets of results that fit into buffers: the advice is to send less'
);
group(
	qw(rtt 100  requests 50  exec_time 100  send_time 20000  send_blocked_time 20000
	  bytes_sent 20e6  retransmits 40  packets_sent 14000));
expect(
	'narrow path',
	qr/^The network limited sending for 20 of 20\.1 s\. 20 MB went at 1 MB\/s, and 40 of 14000 packets were sent again$/,
	'a narrow path');
group(
	qw(rtt 0.1  requests 1  exec_time 2900  send_time 55700  send_blocked_time 55700
	  send_client_time 55700  bytes_sent 5e6));
expect(
	'slow reader',
	qr/^The client was not reading for 55\.7 of 58\.6 s\. It read 5 MB at /,
	'a client that does not read');
group(qw(requests 1  exec_time 1000  recv_time 40000  bytes_received 40e6));
expect(
	'slow loader',
	qr/^The server waited 40 of 41 s for more data .*\. 40 MB came at 1 MB\/s$/,
	'a client that does not send');
group(qw(requests 1  exec_time 1000  recv_time 40000),
	bytes_received => undef);
expect(
	'slow loader',
	qr/COPY FROM STDIN$/,
	'a client that does not send over a Unix-domain socket');

1;
