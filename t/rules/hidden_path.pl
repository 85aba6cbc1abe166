
# Copyright (c) 2026, the pgnetlat authors

# Proxies that hide the path.

use strict;
use warnings;

use PgNetlat::Figures;
use Test::More;

my @found;

my %proxied = (
	qw(requests 700  exec_time 300  client_time 56000  rtt 0.01),
	client_addr => "'127.0.0.1'");
my %waits = (
	qw(datid 5  usesysid 10),
	application_name => "'app'",
	metric => "'wait'",
	client_addr => "'127.0.0.1'",
	le => q{'{0.005,0.01,0.025,0.05,0.1,0.25,0.5,1.0,+Inf}'},
	count => 700);
my %connecting = (%waits, metric => "'connect'", count => 2, sum => 0.4);

group(%proxied);
add('h', %waits, bucket => q{'{2,3,5,8,690,698,700,700,700}'});
add('h', %connecting);
@found = expect(
	'hidden path',
	qr/^The round trip is 0\.01 ms, but \d+ % of the waits took between \d+ ms and \d+ ms, and connecting took 200 ms\. A proxy may hide the path$/,
	'a proxy');
near($found[0]{lost_sessions}, 56 / 60,
	'a proxy: lost_sessions is the waits');

foreach my $sum (undef, 0.02)
{
	group(%proxied);
	add('h', %waits, bucket => q{'{2,3,5,8,690,698,700,700,700}'});
	add('h', %connecting, sum => $sum) if defined $sum;
	@found = expect(
		'hidden path',
		qr/A proxy may hide the path, or the client asks on a schedule$/,
		'a proxy or a schedule');
	near($found[0]{lost_sessions},
		0, 'a proxy or a schedule: lost_sessions is 0');
}
group(%proxied, transactions => 100, in_xact_wait_time => 50000);
add('h', %waits, bucket => q{'{2,3,5,8,690,698,700,700,700}'});
@found = expect('hidden path', undef, 'a proxy, in transactions');
near($found[0]{lost_sessions},
	56 / 60, 'a proxy, in transactions: lost_sessions is the waits');

# TPC-B by several sessions, of which one has forgotten its transaction
my %proxied_xacts = (
	%proxied,
	qw(requests 1148  transactions 229  client_time 106600  in_xact_wait_time 84330)
);
group(%proxied_xacts, sessions => 4);
session(
	(   map {
				$_ => $proxied_xacts{$_} =~ /^\d+$/
			  ? $proxied_xacts{$_} / 4
			  : $proxied_xacts{$_}
		} keys %proxied_xacts),
	pid => 20 + $_) foreach 1 .. 4;
add('h', %waits,
	count => 1148,
	bucket => q{'{2,3,5,8,900,1145,1148,1148,1148}'});
@found = expect('hidden path', undef, 'a proxy, in transactions of sessions');
is(scalar(@found), 1,
	'a proxy, in transactions of sessions: the only finding')
  or diag(explain(\@found));
group(%proxied_xacts, sessions => 2);
session(
	%proxied_xacts,
	qw(pid 25  requests 10  transactions 3  client_time 20000  in_xact_wait_time 20000),
	state => 'waiting in transaction',
	age => 19);
add('h', %waits,
	count => 1148,
	bucket => q{'{2,3,5,8,900,1145,1148,1148,1148}'});
@found = found();
is( join(', ', map { "$_->{subject_kind} $_->{verdict}" } @found),
	'client hidden path, session idle in transaction',
	'a proxy, and a session that is idle in transaction');

# pauses between transactions
group(%proxied,
	qw(requests 350  transactions 48  client_time 53600  in_xact_wait_time 25400)
);
add('h', %waits,
	count => 350,
	bucket => q{'{0,0,0,1,302,302,303,350,350}'});
@found = expect(
	'hidden path',
	qr/100 % of the waits in transactions took between .*\. A proxy may hide the path$/,
	'a proxy, and pauses');
near(
	$found[0]{lost_sessions},
	25.4 / 60 * 350 / 302,
	'a proxy, and pauses: lost_sessions is without the pauses');
group(%proxied);
add('h', %waits, bucket => q{'{200,250,300,350,450,550,620,680,700}'});
healthy('waits of all lengths');

1;
