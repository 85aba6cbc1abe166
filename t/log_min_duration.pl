
# Copyright (c) 2026, the pgnetlat authors

# A line in the server's log for each slow exchange: it says what the client has
# caused, has each of core's formats, never goes to the client, and is limited
# in rate.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use JSON::PP qw(decode_json);
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('log', conf => <<'EOC');
logging_collector = on
log_destination = 'stderr,csvlog,jsonlog'
log_directory = log
log_filename = 'server.log'
log_rotation_age = 0
log_rotation_size = 0
log_line_prefix = '[%p] %Q '
fsync = on
pgnetlat.rtt_interval = 0
EOC
$node->start;
my $log = $node->data_dir . '/log/server';

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat', 'CREATE TABLE t (v text)');

my $number = qr/\d+\.\d/;
my $format = qr{
	duration\ (?<duration>$number)\ ms:
	\ exec\ (?<exec>$number),
	\ send\ (?<send>$number)(?:\ \((?<why>[^)]*)\))?,
	\ recv\ (?<recv>$number)(?:,\ network\ (?<network>$number))?,
	\ (?<bytes>\d+\ (?:bytes|kB|MB));
	\ wait\ before\ it\ (?<wait>$number)\ ms(?<in_xact>\ in\ transaction)?
	(?:;\ rtt\ (?<rtt>$number)\ ms)?
	(?:;\ query\ identifier\ (?<queryid>-?\d+))?
	(?:;\ trace\ (?<trace>[0-9a-f]{32}))?
	(?:;\ (?<more>\d+)\ more\ were\ not\ logged)?
	$}x;

# The lines of a session, taken apart and checked.
sub lines_of
{
	my ($pid) = @_;
	my @lines;

	foreach my $text (split /\n/, slurp_file("$log.log"))
	{
		my ($message) = $text =~ /^\[$pid\] \S+ LOG:  (duration .*)$/ or next;

		if ($message =~ $format)
		{
			my %line = (%+, text => $message);
			my $sum =
			  $line{exec} + $line{send} + $line{recv} + ($line{network} // 0);

			push @lines, \%line;
			cmp_ok(abs($sum - $line{duration}),
				'<', 0.3, 'the parts of a line sum up to its duration')
			  or diag($message);
		}
		else
		{
			fail("a line of another form: $message");
		}
	}
	return @lines;
}

# Waits for so many lines of a client, with what was left out; the latest.
sub line_of
{
	my ($client, $count) = @_;
	my @lines;
	my $seen = $observer->poll(
		sub {
			my @matches = slurp_file("$log.log") =~
			  /^\[@{[ $client->pid ]}\].*duration /gm;
			return @matches >= $count;
		});

	ok($seen, 'the log has the expected number of lines');
	@lines = lines_of($client->pid);
	is(scalar(@lines), $count, 'the log has no other line');
	return $lines[-1];
}

my %count;

sub next_line
{
	my ($client) = @_;

	return line_of($client, ++$count{ $client->pid });
}

sub client { return PgNetlat::Client->named($node, @_); }

# ---------------------------------------------------------------------------
# Off
# ---------------------------------------------------------------------------

is($observer->value('SHOW pgnetlat.log_min_duration'),
	'-1', 'log_min_duration is off by default');
my $client = client('unix');
$client->run('SELECT pg_sleep(0.3)');
$observer->settled($client->pid, 1);

# ---------------------------------------------------------------------------
# What takes long
# ---------------------------------------------------------------------------

$client->run(q{SET pgnetlat.log_min_duration = '200ms'}, 'SELECT 1');
$observer->settled($client);
pause(150);
my $queryid;
{
	my $asked = now();
	$client->run('SELECT pg_sleep(0.3)');
	$queryid = $observer->value(
		'SELECT query_id FROM pg_stat_activity WHERE pid = ' . $client->pid);

	# the server is done with it for sure when it has answered the next one
	$client->run('SELECT 1');
	my $took = now() - $asked;
	my $line = next_line($client);

	cmp_ok($line->{duration}, '>=', 300,
		'executes: the duration is not too short');
	cmp_ok(
		$line->{duration}, '<=',
		$took + 0.1,
		'executes: the duration is not too long');
	at_least($line->{exec}, 300, 'executes: exec has the time');
	cmp_ok($line->{wait}, '>=', 150 - 1,
		'executes: the line has the wait before it');
	is($line->{in_xact}, undef,
		'executes: the wait was not in a transaction');
	is($line->{rtt}, undef, 'executes: no rtt on a Unix-domain socket');
	is($line->{queryid}, $queryid,
		'executes: the line has the query identifier');
}

$client->run('BEGIN');
$observer->settled($client);
pause(100);
$client->run('SELECT pg_sleep(0.3)');
{
	my $line = next_line($client);

	cmp_ok($line->{wait}, '>=', 100 - 1,
		'in a transaction: the line has the wait before it');
	ok($line->{in_xact}, 'in a transaction: the wait was in a transaction');
}
$client->run('COMMIT');

# a tracer's trace, alone and in one request with what it is for
my $trace = '4bf92f3577b34da6a3ce929d0e0e4736';
my $set = "SET application_name = '00-$trace-00f067aa0ba902b7-01'";
foreach my $requests ([ $set, 'SELECT pg_sleep(0.3)' ],
	["$set; SELECT pg_sleep(0.3)"])
{
	$client->run(@$requests);
	is(next_line($client)->{trace}, $trace, 'the line has the trace');
	$client->run('RESET application_name');
}
$client->run('SELECT pg_sleep(0.3)');
is(next_line($client)->{trace}, undef, 'without a trace, the line has none');

foreach my $tcp (0, 1)
{
	my $reader = client('reader', tcp => $tcp, receive_buffer => 4096);

	$reader->run('SELECT 1', q{SET pgnetlat.log_min_duration = '200ms'});
	$reader->put(query(q{SELECT repeat('x', 30000000)}));
	ok($observer->await($reader->pid, sub { $_->{state} eq 'sending' }),
		'a slow reader: the server is sending');
	pause(500);
	$reader->responses;
	my $line = next_line($reader);

	cmp_ok($line->{send}, '>=', 500 - 1,
		'a slow reader: send is not too short');
	is( $line->{why},
		'client not reading',
		'a slow reader: the line has the reason');
	is($line->{bytes}, '29 MB',
		'a slow reader: the line has the size of the response');
	is(defined $line->{rtt},
		$tcp == 1,
		'a slow reader: the line has the round trip over TCP only');
	$reader->finish;
}

{
	my $writer = client('writer');

	$writer->run(q{SET pgnetlat.log_min_duration = '200ms'});
	$writer->put(query('COPY t FROM STDIN'));
	$writer->until('G');
	pause(400);
	$writer->put(copy_data("x\n") . copy_done());
	$writer->responses;
	my $line = next_line($writer);

	# the client may have had the invitation before the server was done with it; receiving
	# is sampled, by a sampler that may be late
	cmp_ok($line->{send} + $line->{recv},
		'>=', 400 / 2, 'an upload: send and recv have the pause');
	cmp_ok(
		$line->{recv}, '>',
		$line->{exec} + $line->{send},
		'an upload: most of the time is recv');
	$writer->finish;
}

# ---------------------------------------------------------------------------
# The client does not see it
# ---------------------------------------------------------------------------

$client->run('SET client_min_messages = debug5');
$client->put(query('SELECT pg_sleep(0.3)'));
is( join('',
		map    { $_->{type} }
		  grep { $_->{type} eq 'N' && $_->{body} =~ /duration/ }
		  $client->until('Z')),
	'',
	'the client gets no line');
next_line($client);
$client->run('SET client_min_messages = error');

# nor of an interrupt while the line is written.  A cancel request that arrives during
# COMMIT only cuts commit_delay short, and stays pending when the line is written.
$client->run(
	q{SET pgnetlat.log_min_duration = '20ms'},
	'SET commit_delay = 100000',
	'SET commit_siblings = 0');
for (1 .. 5)
{
	$client->put(query(q{INSERT INTO t VALUES ('x')}));
	pause(30);
	$client->cancel;
	$client->until('Z');
	is(eval { $client->value('SELECT 42') } // $@,
		42, 'a cancel request does not interrupt the writing of the line');
}

# ---------------------------------------------------------------------------
# The rate is limited
# ---------------------------------------------------------------------------

my $chatty = client('chatty');
my $began = now();
$chatty->run('SET pgnetlat.log_min_duration = 0');
$chatty->run(('SELECT 1') x 500);
my $took = now() - $began;
pause(1100);
$chatty->run('SELECT 2');
my $lines = 0;
my $left_out = 0;
ok( $observer->poll(
		sub {
			my @texts = slurp_file("$log.log") =~
			  /^\[@{[ $chatty->pid ]}\].*duration (.*)$/gm;

			$lines = @texts;
			$left_out = 0;
			/; (\d+) more were not logged$/ && ($left_out += $1)
			  foreach @texts;
			return $lines + $left_out >= 502;
		}),
	'lines left out are counted');
is($lines + $left_out, 502, 'lines left out are counted once');
cmp_ok(
	$lines, '<=',
	10 * (2 + int($took / 1000)) + 10,
	'at most ten lines per second');

# ---------------------------------------------------------------------------
# In core's formats
# ---------------------------------------------------------------------------

my @json =
  map { decode_json($_) } grep { /"message":"duration / } split /\n/,
  slurp_file("$log.json");
cmp_ok(scalar(@json), '>=', 5, 'jsonlog has the lines');
my ($first) = grep { $_->{pid} == $client->pid } @json;
like($first->{message}, $format, 'jsonlog: the message has the same format');
is($first->{error_severity}, 'LOG', 'jsonlog: the level is LOG');
is($first->{query_id}, $queryid,
	'jsonlog: the line has the query identifier');
is($first->{statement}, undef, 'jsonlog: the line has no statement text');

$observer->run(
	'CREATE TABLE log (' . join(', ', map { "c$_ text" } 1 .. 26) . ')');
ok( $observer->poll(
		sub {
			eval {
				$observer->run('TRUNCATE log',
					"COPY log FROM '$log.csv' WITH (FORMAT csv)");
				1;
			};
		}),
	'csvlog can be read back');
is( $observer->value(
		"SELECT c14 FROM log WHERE c4 = '@{[ $client->pid ]}' AND c14 LIKE 'duration %'
		  ORDER BY c7::int LIMIT 1"),
	$first->{message},
	'csvlog: the message is that of jsonlog');

no_violations($observer);
$node->stop;
done_testing();
