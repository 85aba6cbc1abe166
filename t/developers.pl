
# Copyright (c) 2026, the pgnetlat authors

# What developers look at: the session's own latest request, in SQL and beside
# psql's \timing, and a small answer for chats and programs.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use JSON::PP;
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('developers');

# ---------------------------------------------------------------------------
# The latest request
# ---------------------------------------------------------------------------

my $client = PgNetlat::Client->named($node, 'shop');
my $last = 'SELECT * FROM pgnetlat_last';

is(scalar $client->rows($last), 0, 'there is no request before the first');
$client->run('SELECT g, pg_sleep(0.1) FROM generate_series(1, 3) g');
my ($row) = $client->rows($last);
is($row->{rows}, 3, 'the latest request has its rows');
is($row->{statements}, 1, 'and its statement');
cmp_ok($row->{exec_time}, '>=', 300, 'and its execution');
cmp_ok(
	abs($row->{application_time} -
		  $row->{exec_time} -
		  $row->{send_time} -
		  $row->{recv_time} -
		  ($row->{rtt} // 0)),
	'<', 0.001,
	'which is the sum of its parts');
cmp_ok($row->{bytes_sent}, '>', 0, 'and its bytes');
($row) = $client->rows($last);
is($row->{rows}, 1, 'the next time, it is the question itself');
$client->finish;

# Beside psql's \timing.
my ($out, $error) = ('', '');
IPC::Run::run(
	[ 'psql', '-X', '-q', '-A', '-t', '-d', $node->connstr('postgres') ],
	'<',
	\"\\i $FindBin::RealBin/../sql/pgnetlat-timing.psql\nSELECT pg_sleep(0.05);\n:netlat\n",
	'>',
	\$out,
	'2>',
	\$error);
is($error, '', 'psql has no errors');
like(
	$out,
	qr/^(?:[5-9]\d|\d{3,})\.\d ms = server (?:[5-9]\d|\d{3,})\.\d \+ network \d+\.\d; 1 row, \d+ bytes$/m,
	':netlat shows what the statement cost');

# ---------------------------------------------------------------------------
# A small answer
# ---------------------------------------------------------------------------

# long names, of characters of three bytes each, and many groups
my @crowd =
  map { PgNetlat::Client->named($node, "$_ " . "\xe6\x97\xa5" x 18) } 1 .. 15;
foreach my $member (@crowd)
{
	$member->run('SELECT pg_sleep(0.02)') foreach 1 .. 3;
}
my $text = $observer->value('SELECT pgnetlat_brief()');
cmp_ok(length $text, '<=', 4096, 'the small answer has at most 4096 bytes');
my $brief = decode_json($text);
cmp_ok(scalar @{ $brief->{findings} }, '>=', 1, 'it has findings');
cmp_ok(scalar @{ $brief->{groups} }, '>=', 1, 'it has client groups');
cmp_ok(@{ $brief->{groups} } + $brief->{groups_left_out},
	'>=', 15, 'it counts those that it leaves out');
is( join(' ',
		grep { !exists $brief->{groups}[0]{$_} }
		  qw(rtt_ms busy_sessions server_percent network_percent client_percent)
	),
	'',
	'units are in the names');
$observer->run('CREATE ROLE plain LOGIN');
my $plain = decode_json(
	$node->safe_psql('postgres', 'SET ROLE plain; SELECT pgnetlat_brief()'));
ok(!$plain->{sees_all_roles},
	'a plain role is told that it does not see all');
is($plain->{groups_left_out} + @{ $plain->{groups} },
	0, 'and sees nothing of others');
$_->finish foreach @crowd;
$observer->run('SELECT pgnetlat_reset()');
$brief = decode_json($observer->value('SELECT pgnetlat_brief()'));
ok($brief->{findings}[0]{verdict}, 'after a reset, there is still an answer');

no_violations($observer);
$node->stop;
done_testing();
