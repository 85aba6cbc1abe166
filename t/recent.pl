
# Copyright (c) 2026, the pgnetlat authors

# The flight recorder: a session's latest exchanges, in order, each as it was.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('recent', conf => <<'EOC');
pgnetlat.idle_threshold = '400ms'
pgnetlat.recorder_size = 32
EOC

# The records of a session, once there are so many of them.
sub recent
{
	my ($client, $count) = @_;

	return @{
		$observer->poll(
			sub {
				my @rows = $observer->rows(
					'SELECT *, extract(epoch FROM start) * 1000 AS start_ms
					 FROM pgnetlat_recent(' . $client->pid . ')');
				@rows >= $count ? \@rows : undef;
			}) // []
	};
}

my $client = PgNetlat::Client->connect($node, tcp => 1);
is( $observer->value(
		'SELECT count(*) FROM pgnetlat_recent(' . $client->pid . ')'),
	0,
	'a session that has done nothing has no records');
is($observer->value('SELECT count(*) FROM pgnetlat_recent(1)'),
	0, 'a process that is no session has no records');

# Each record is complete when the wait after it is, so there is one more
# exchange than looked at.
$client->run('SELECT generate_series(1, 5)');
my $paused = pause(200);
$client->run('BEGIN');
$client->run('SELECT pg_sleep(0.2)');
$client->run('SELECT 1; SELECT 2; SELECT generate_series(1, 3)');
$client->error_of('SELECT 1 / 0');
$client->run('ROLLBACK');
my $idle = pause(500);
$client->run(q{SELECT repeat('x', 100000)});
$client->put(query('SELECT 3') x 3);
$client->responses(3);
$client->run('SELECT 4');

my @records = recent($client, 10);
cmp_ok(scalar @records, '>=', 10, 'each exchange has a record');

is( scalar(
		grep { $records[$_]{start_ms} < $records[ $_ - 1 ]{start_ms} }
		  1 .. $#records),
	0,
	'records are in order');
is( join(' ', map { $_->{statements} } @records[ 0 .. 9 ]),
	'1 1 1 3 0 1 1 1 1 1',
	'each record has its number of statements');
is( join(' ', map { $_->{rows} } @records[ 0 .. 9 ]),
	'5 0 1 5 0 0 1 1 1 1',
	'each record has its number of rows');
is(join('', map { $_->{xact_status} } @records[ 0 .. 9 ]),
	'ITTTEIIIII', 'each record has the transaction status after it');
is(join('', map { $_->{pipelined} } @records[ 0 .. 9 ]),
	'0000000011', 'each record says whether it was pipelined');
is(join('', map { $_->{fetched} } @records[ 0 .. 9 ]),
	'0' x 10, 'a record that is no FETCH says so');
is(scalar(grep { !defined $_->{queryid} } @records[ 0, 2, 6, 7 ]),
	0, 'records have query identifiers');
is( $records[7]{queryid},
	$records[8]{queryid},
	'records of the same statement have the same identifier');
isnt(
	$records[0]{queryid},
	$records[2]{queryid},
	'records of different statements have different identifiers');

at_least($records[0]{wait_time},
	$paused, 'wait_time of a record has the pause after it');
at_least($records[2]{exec_time},
	200, 'exec_time of a slow record has its sleep');
at_least($records[5]{idle_time},
	$idle, 'idle_time of a record has the idle wait after it');
cmp_ok($records[6]{bytes_sent},
	'>', 100000, 'bytes_sent of a large record is large');
cmp_ok($records[0]{bytes_sent},
	'<', 1000, 'bytes_sent of a small record is small');

is( scalar(
		grep {
			abs($_->{wait_time} -
				  $_->{network_time} -
				  $_->{client_time} -
				  $_->{idle_time}) > 1e-6
		} @records),
	0,
	'the parts of each wait sum to wait_time');

# Where one exchange with its wait ends, the next one begins.
my $gaps = 0;
foreach (1 .. 9)
{
	my $last = $records[ $_ - 1 ];
	my $end =
	  $last->{start_ms} +
	  $last->{exec_time} +
	  $last->{send_time} +
	  $last->{recv_time} +
	  $last->{wait_time};

	# moments are cut to microseconds
	$gaps++ if abs($end - $records[$_]{start_ms}) > 0.01;
}
is($gaps, 0, 'each record begins where the one before ends');

# All records together are the account.
my $account = $observer->settled($client);
my %sum;
foreach my $record (@records[ 0 .. 9 ])
{
	$sum{$_} += $record->{$_}
	  foreach qw(exec_time send_time recv_time bytes_sent
	  statements network_time client_time idle_time);
}
$client->run('SELECT 5');
@records = recent($client, 11);
$sum{$_} += $records[10]{$_}
  foreach qw(exec_time send_time recv_time bytes_sent
  statements);
is($sum{$_}, $account->{$_}, "$_ of all records is that of the account")
  foreach qw(bytes_sent statements);
cmp_ok(abs($sum{$_} - $account->{$_}),
	'<', 1e-3, "$_ of all records is nearly that of the account")
  foreach qw(exec_time send_time recv_time);

# ---------------------------------------------------------------------------
# More exchanges than the recorder holds
# ---------------------------------------------------------------------------

$client->run('SELECT generate_series(1, ' . $_ . ')') foreach 1 .. 100;
$client->run('SELECT 0');
@records = recent($client, 20);
cmp_ok(scalar @records,
	'<=', 32, 'there are no more records than the recorder holds');
cmp_ok(scalar @records,
	'>=', 28, 'there are about as many records as the recorder holds');
is( join(' ', map { $_->{rows} } @records),
	join(' ', 100 - @records + 1 .. 100),
	'the records are the latest ones');

# ---------------------------------------------------------------------------
# Several statements under one Sync are one exchange
# ---------------------------------------------------------------------------

$client->put((extended('SELECT pg_sleep(0.1)')) x 3, sync());
$client->responses;
$client->run('SELECT 0');
my $found = $observer->poll(
	sub {
		my @found = grep { $_->{statements} == 3 } recent($client, 20);
		@found ? \@found : undef;
	});
is(scalar @$found, 1, 'statements under one Sync are one record');
at_least($found->[0]{exec_time},
	300, 'statements under one Sync: the record has the execution of all');

# ---------------------------------------------------------------------------
# An exchange is shown as a whole or not at all
# ---------------------------------------------------------------------------

# while it lasts, although its first statement is complete
$observer->run('SELECT pg_advisory_lock(1)');
$client->put(extended('SELECT generate_series(1, 777)'),
	extended('SELECT pg_advisory_lock(1)'), sync());
ok( $observer->poll(
		sub {
			$observer->value(
				"SELECT wait_event_type = 'Lock' FROM pg_stat_activity
				 WHERE pid = " . $client->pid) eq 't';
		}),
	'the second statement of an exchange is executing');
is(scalar(grep { $_->{rows} == 777 } recent($client, 1)),
	0, 'an exchange that is not over is not shown');
$observer->run('SELECT pg_advisory_unlock(1)');
$client->responses;
$client->run('SELECT pg_advisory_unlock(1)');
($found) = grep { $_->{rows} == 778 } recent($client, 1);
is($found && $found->{statements}, 2, 'an exchange that is over is shown');

# with the turn in its middle, in which the client is asked for data
$client->run('CREATE TEMP TABLE fed (i int)');
$client->put(query('COPY fed FROM STDIN'));
$client->until('G');
$paused = pause(200);
$client->put(copy_data(join('', map { "$_\n" } 1 .. 333)), copy_done());
$client->responses;
$client->run('SELECT 0');
($found) = grep { $_->{rows} == 333 } recent($client, 1);
is($found && $found->{statements}, 1, 'COPY FROM STDIN is one record');
at_least($found->{recv_time} + $found->{network_time},
	$paused, 'COPY FROM STDIN: the record has the wait for its data');

# the beginning of a long one has been overwritten
$client->run(join(';', ('SELECT generate_series(1, 1000)') x 40));
$client->run('SELECT generate_series(1, 5)', 'SELECT 0');
@records = recent($client, 1);
is(scalar(grep { $_->{rows} >= 1000 } @records),
	0, 'an exchange that has lost its beginning is not shown');
is($records[-1]{rows}, 5, 'the next exchange is shown');

# ---------------------------------------------------------------------------
# Not recorded, and forgotten
# ---------------------------------------------------------------------------

$client->run('SET pgnetlat.track_statements = off', ('SELECT 1') x 10);
$observer->settled($client);
$client->run(('SELECT generate_series(1, 9)') x 10);
$observer->settled($client);
is(scalar(grep { $_->{rows} == 9 } recent($client, 1)),
	0, 'nothing is recorded without track_statements');

$observer->run('SELECT pgnetlat_reset()');
is( $observer->value(
		'SELECT count(*) FROM pgnetlat_recent(' . $client->pid . ')'),
	0,
	'a reset forgets the records');
$client->run('SET pgnetlat.track_statements = on',
	'SELECT 1', 'SELECT 2', 'SELECT 3');
@records = recent($client, 2);
cmp_ok(scalar @records, '>=', 2,
	'exchanges are recorded again after a reset');
$client->finish;
ok( $observer->poll(
		sub {
			$observer->value('SELECT count(*) = 0 FROM pgnetlat_recent('
				  . $client->pid
				  . ')') eq 't';
		}),
	'records end with the session');

# FETCH is known by its command, whatever the text
my $cursor = PgNetlat::Client->connect($node);
$cursor->run('BEGIN');
$cursor->run('DECLARE c CURSOR FOR SELECT generate_series(1, 9)');
$cursor->run('/* of a driver */ FETCH 3 FROM c') foreach 1 .. 2;
$cursor->run('COMMIT');
$cursor->run('SELECT 1');
is(join('', map { $_->{fetched} } (recent($cursor, 5))[ 0 .. 4 ]),
	'00110', 'a record says whether it is a FETCH');
$cursor->finish;

# what does no work, and what does
my $useless = PgNetlat::Client->connect($node);
$useless->run(
	'SELECT 1',
	q{SET TimeZone = 'UTC'},
	'SHOW TimeZone',
	'RESET TimeZone',
	'DISCARD PLANS',
	'SELECT 1; SELECT count(*) FROM pg_class',
	'SELECT 1 + length(version())',
	'SELECT now()',
	'BEGIN',
	'COMMIT',
	'SELECT 2');
is(join('', map { $_->{overhead} } (recent($useless, 10))[ 0 .. 9 ]),
	'1111100000', 'a record says whether it does no work');
$useless->finish;

no_violations($observer);
$node->stop;
done_testing();
