
# Copyright (c) 2026, the pgnetlat authors

# What the kernel reports of connections: only of the right ones, nothing twice,
# and nothing left out.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(sum);
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'only Linux reports this' unless $^O eq 'linux';

my ($node, $observer) = start_node('kernel', conf => <<'EOC');
listen_addresses = '127.0.0.1, ::1'
pgnetlat.idle_threshold = '1h'
EOC

# 20 MB, more than the kernel takes
my $large = q{SELECT repeat('x', 10000) FROM generate_series(1, 2000)};
my @columns =
  qw(retransmits bytes_received packets_sent packets_received send_client_time);

# Clients whose responses are stuck, and which are known to be the cause: the
# sampler asks the kernel about them at each tick.
sub stuck_readers
{
	my ($count, $application, %options) = @_;
	my @clients = map {
		PgNetlat::Client->connect(
			$node,
			tcp => 1,
			receive_buffer => 65536,
			application_name => $application,
			%options)
	} 1 .. $count;

	$_->put(query($large)) foreach @clients;
	ok( $observer->poll(
			sub {
				my $accounts =
				  $observer->accounts("application_name = '$application'");
				return $count == grep {
					$_->{state} eq 'sending' and $_->{send_client_time} >= 50
				} values %$accounts;
			}),
		"$application: $count readers are stuck");
	return @clients;
}

# Reads a group until the sampler has made this many ticks.  Returns its last
# state, and what fell or was negative.
sub watch
{
	my ($application, $ticks, $before) = @_;
	my $until =
	  $observer->value('SELECT sampler_ticks FROM pgnetlat_info') + $ticks;
	my @wrong;

	do
	{
		my ($now) =
		  $observer->rows('SELECT '
			  . join(', ', map { "sum($_) AS $_" } @columns)
			  . " FROM pgnetlat_clients WHERE application_name = '$application'"
		  );

		push @wrong, map { "$_ fell from $before->{$_} to $now->{$_}" }
		  grep           { $now->{$_} < $before->{$_} } @columns
		  if $before;
		push @wrong,
		  map { "$_ is $now->{$_}" } grep { $now->{$_} < 0 } @columns;
		$before = $now;
	} while (
		$observer->value('SELECT sampler_ticks FROM pgnetlat_info') < $until);
	return ($before, @wrong);
}

# ---------------------------------------------------------------------------
# A connection that is gone, while its process does not know it yet
# ---------------------------------------------------------------------------

# The listening socket is what the kernel finds instead, ...
my @clients = stuck_readers(2, 'gone');
my ($before, @wrong) = watch('gone', 2);
kill 'STOP', map { $_->pid } @clients;
$_->reset foreach @clients;
my ($after, @fell) = watch('gone', 20, $before);
is(join("\n", @wrong, @fell), '', 'connections that are gone: nothing falls');
is( $after->{bytes_received},
	sum(map { $_->sent } @clients),
	'connections that are gone: their traffic stays');
kill 'CONT', map { $_->pid } @clients;
ok($observer->ended('gone', 2),
	'connections that are gone: their sessions end');

# ... or a later connection of the same client from the same port.
my $port = PostgreSQL::Test::Cluster::get_free_port();
my ($client) = stuck_readers(1, 'replaced', local_port => $port);
($before, @wrong) = watch('replaced', 2);
kill 'STOP', $client->pid;
$client->reset;
my $later = PgNetlat::Client->connect($node, tcp => 1, local_port => $port);
$later->run(('SELECT 1') x 100);
cmp_ok($later->sent, '>', $client->sent,
	'a connection that is replaced: the later one has sent more');
($after, @fell) = watch('replaced', 20, $before);
is(join("\n", @wrong, @fell),
	'', 'a connection that is replaced: nothing falls');
is($after->{bytes_received},
	$client->sent,
	'a connection that is replaced: only its own traffic counts');
kill 'CONT', $client->pid;
ok($observer->ended('replaced'),
	'a connection that is replaced: its session ends');
$later->finish;

# Many that end like this, while somebody looks.
my $sent = 0;
undef $before;
@wrong = ();
foreach (1 .. 5)
{
	@clients = stuck_readers(20, 'storm');
	$sent += $_->sent foreach @clients;
	$_->reset foreach @clients;
	($before, @fell) = watch('storm', 5, $before);
	push @wrong, @fell;
}
ok($observer->ended('storm', 100),
	'many connections that are reset: their sessions end');
($after, @fell) = watch('storm', 1, $before);
is(join("\n", @wrong, @fell),
	'', 'many connections that are reset: nothing falls');
is($after->{bytes_received},
	$sent, 'many connections that are reset: all their traffic counts');

# ---------------------------------------------------------------------------
# Short connections
# ---------------------------------------------------------------------------

# One query of half a megabyte each; how the client leaves varies.
my $statement = q{SELECT length('} . 'x' x 500_000 . q{')};
my %leave = (
	politely => sub { $_[0]->finish },
	silently => sub { $_[0]->vanish },
	rudely => sub { $_[0]->reset });
foreach my $manner (sort keys %leave)
{
	my $connections = 20;

	$sent = 0;
	foreach (1 .. $connections)
	{
		$client = PgNetlat::Client->connect(
			$node,
			tcp => 1,
			application_name => $manner);
		$client->run($statement);
		$leave{$manner}->($client);
		$sent += $client->sent;
	}
	my $sum = $observer->ended($manner, $connections);
	cmp_ok(
		$sent, '>',
		500_000 * $connections,
		"short connections that end $manner: every query is sent");
	cmp_ok($sum->{bytes_received},
		'>=', $sent,
		"short connections that end $manner: every byte is counted");

	# to the kernel the end of a stream is one byte more
	cmp_ok(
		$sum->{bytes_received},
		'<=',
		$sent + $connections,
		"short connections that end $manner: no byte is counted twice");

	# to connect, to log in and to ask; a segment holds 64 kB at most
	cmp_ok(
		$sum->{packets_received},
		'>=',
		$connections * 2 + $sent / 65536,
		"short connections that end $manner: packets_received is plausible");
	cmp_ok(
		$sum->{packets_sent}, '>=',
		$connections * 2,
		"short connections that end $manner: packets_sent is plausible");
}

# A session that ends counting has not ended: what it has received is known.
$client = PgNetlat::Client->connect($node, tcp => 1);
$observer->expect_clock(0);
$client->run($statement, 'SET pgnetlat.enabled = off');
my $account =
  $observer->await($client->pid, sub { $_->{state} eq 'disabled' });
is($account->{bytes_received},
	$client->sent, 'the kernel is asked when counting ends');
$client->finish;
$observer->expect_clock(1);

# Nor has one that goes on under another name: it is known whose it was.
$client =
  PgNetlat::Client->connect($node, tcp => 1, application_name => 'first');
$client->run($statement, q{SET application_name = 'second'});
my $first = $client->sent;

# the kernel is asked when the answer has left
ok( $observer->poll(sub { ($observer->client('second') // {})->{sessions} }),
	'another name: its group has the session');
$client->run($statement);
$client->finish;
my $second = $observer->ended('second')->{bytes_received};
is($observer->client('first')->{bytes_received},
	$first, 'another name: earlier traffic stays with the old name');
cmp_ok(
	$second, '>=',
	$client->sent - $first,
	'another name: later traffic goes to the new name');
cmp_ok(
	$second, '<=',
	$client->sent - $first + 1,
	'another name: only later traffic goes to the new name');

# But the kernel is not asked if rtt_interval is -1.
$client = PgNetlat::Client->connect(
	$node,
	tcp => 1,
	application_name => 'unasked',
	options => '-c pgnetlat.rtt_interval=-1');
$client->run($statement);
$client->finish;
is($observer->ended('unasked')->{bytes_received},
	0, 'rtt_interval = -1: the kernel is not asked when the session ends');

# ---------------------------------------------------------------------------
# IPv6
# ---------------------------------------------------------------------------

SKIP:
{
	$client = eval { PgNetlat::Client->connect($node, tcp => 6) };
	skip 'this machine has no IPv6', 2 unless $client;
	$client->finish;
	($client) = stuck_readers(1, 'ipv6', tcp => 6);
	$client->reset;
	is($observer->ended('ipv6')->{bytes_received},
		$client->sent, 'IPv6: traffic counts');
}

# ---------------------------------------------------------------------------
# Many readers that are stuck at the same time
# ---------------------------------------------------------------------------

# More than the sampler asks about in one tick.  All are blamed, and go on
# being blamed.
my $readers = 60;
@clients = stuck_readers($readers, 'stuck');
$before = $observer->accounts(q{application_name = 'stuck'});
ok( $observer->poll(
		sub {
			my $accounts = $observer->accounts(q{application_name = 'stuck'});
			return $readers == grep {
				$_->{send_client_time} >=
				  $before->{ $_->{pid} }{send_client_time} + 200
			} values %$accounts;
		}),
	"$readers readers that are stuck: each one is blamed all the time");
$_->reset foreach @clients;
ok( $observer->ended('stuck', $readers),
	"$readers readers that are stuck leave");

# ---------------------------------------------------------------------------
# A kernel that does not reply to the sampler
# ---------------------------------------------------------------------------

# A new sampler has no socket yet, and cannot open one.
my $sampler = 'SELECT sampler_pid FROM pgnetlat_info';
my $old = $observer->value($sampler);
$observer->run("SELECT pg_terminate_backend($old)");
$observer->poll(sub { ($observer->value($sampler) // $old) != $old });
SKIP:
{
	skip 'there is no prlimit command', 1
	  unless eval {
		run_log(
			[ 'prlimit', '--nofile=3:', '--pid', $observer->value($sampler) ]
		);
	  };
	$client = PgNetlat::Client->connect(
		$node,
		tcp => 1,
		receive_buffer => 16384,
		options => '-c pgnetlat.idle_threshold=20');
	$client->put(query(q{SELECT repeat('x', 300000)}));
	pause(100);
	$client->responses;
	ok( $observer->await($client->pid, sub { $_->{state} eq 'idle' }),
		'no reply: a wait after a large response becomes idle');
	$client->finish;
}

no_violations($observer);
$node->stop;
done_testing();
