
# Copyright (c) 2026, the pgnetlat authors

# Statistics survive a clean restart, and nothing else: not a crash, not a file
# that is damaged or somebody else's.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('save', conf => "pgnetlat.history_interval = 1\n");
my $file = $node->data_dir . '/pg_stat/pgnetlat.stat';
$node->start;

my $observer = PgNetlat::Observer->connect($node);
$observer->run('CREATE EXTENSION pgnetlat');

# Lets a session of this name run ten statements of seven rows each, and end.
sub run_statements
{
	my ($name) = @_;
	my $client = PgNetlat::Client->connect($node, application_name => $name);

	$client->run(('SELECT generate_series(1, 7) AS saved') x 10);
	$client->finish;
	return $observer->ended($name);
}

sub restart
{
	my ($mode) = @_;

	$node->stop($mode);
	$node->start;
	$observer = PgNetlat::Observer->connect($node);
	return;
}

# The statement of run_statements(): calls and rows.
sub saved_statement
{
	my ($row) = $observer->rows(
		'SELECT coalesce(sum(calls), 0) AS calls, coalesce(sum(rows), 0) AS rows
		 FROM pgnetlat_statements WHERE rows = 7 * calls AND calls > 0');

	return "$row->{calls} calls, $row->{rows} rows";
}

# ---------------------------------------------------------------------------
# Clean restart
# ---------------------------------------------------------------------------

my $sum = run_statements('keeper');
is(saved_statement(), '10 calls, 70 rows', 'statements are counted');
my ($histogram) = $observer->rows(
	q{SELECT count, sum FROM pgnetlat_histogram
	  WHERE application_name = 'keeper' AND metric = 'request' AND le = '+Inf'});
my $reset = $observer->value('SELECT stats_reset FROM pgnetlat_info');
restart('fast');

my $after = $observer->client('keeper');
ok($after, 'client group is there after a clean restart');
is($after->{$_} // 'NULL', $sum->{$_}, "$_ is kept")
  foreach qw(requests statements transactions pipelined round_trips bytes_sent
  ended_sessions sessions);
cmp_ok(abs($after->{total_time} - $sum->{total_time}),
	'<', 1e-3, 'times are kept');
is(saved_statement(), '10 calls, 70 rows', 'statements are kept');
my ($histogram_after) = $observer->rows(
	q{SELECT count, sum FROM pgnetlat_histogram
	  WHERE application_name = 'keeper' AND metric = 'request' AND le = '+Inf'});
is($histogram_after->{count}, $histogram->{count}, 'histograms are kept');
is( $observer->value(
		q{SELECT count(*) > 0 FROM pgnetlat_history WHERE bucket_start <
		  pg_postmaster_start_time()}),
	't',
	'history is kept');
is($observer->value('SELECT stats_reset FROM pgnetlat_info'),
	$reset, 'the moment of the latest reset is kept');
ok(!-e $file, 'file is gone once it has been loaded');

# it goes on from there
run_statements('keeper');
is($observer->client('keeper')->{requests}, 20, 'saved statistics grow');
is(saved_statement(), '20 calls, 140 rows', 'saved statements grow');

# sessions that are still there at shutdown count as well
my $client = PgNetlat::Client->connect($node, application_name => 'cut off');
$client->run(('SELECT 1') x 3);
restart('fast');
is($observer->client('cut off')->{requests}, 3,
	'sessions that the shutdown ends are saved');
is($observer->client('keeper')->{requests}, 20, 'twice saved is not twice counted');

# ---------------------------------------------------------------------------
# Not after a crash
# ---------------------------------------------------------------------------

restart('immediate');
is($observer->client('keeper'), undef, 'nothing is there after an immediate stop');
is(saved_statement(), '0 calls, 0 rows', 'no statements either');

# ---------------------------------------------------------------------------
# Files that cannot be used
# ---------------------------------------------------------------------------

sub read_file
{
	open my $in, '<:raw', $file or die "could not open $file: $!";
	local $/;
	my $content = <$in>;
	close $in;
	return $content;
}

sub write_file
{
	my ($content) = @_;

	open my $out, '>:raw', $file or die "could not create $file: $!";
	print $out $content;
	close $out;
	return;
}

my %damage = (
	'truncated to half' => sub { substr($_[0], 0, length($_[0]) / 2) },
	'without its last byte' => sub { substr($_[0], 0, -1) },
	'too long' => sub { $_[0] . 'x' },
	'empty' => sub { '' },
	'of four bytes' => sub { substr($_[0], 0, 4) },
	'foreign' => sub { "This is not what you are looking for.\n" x 1000 },
	'of zeros' => sub { "\0" x length($_[0]) },
	'of random bytes after the header' => sub {
		substr($_[0], 0, 16)
		  . join('', map { chr(int(rand(256))) } 17 .. length($_[0]));
	},
	'with one bit changed in its middle' => sub {
		my $content = $_[0];
		substr($content, length($content) / 2, 1) ^= "\x01";
		return $content;
	},
	'with one bit changed at its start' => sub {
		my $content = $_[0];
		substr($content, 0, 1) ^= "\x01";
		return $content;
	},
	'with one bit changed at its end' => sub {
		my $content = $_[0];
		substr($content, -1, 1) ^= "\x01";
		return $content;
	});

my $saved = run_statements('keeper')->{requests};
$node->stop('fast');
ok(-s $file, 'file is there while the server is down');
my $good = read_file();

foreach my $name (sort keys %damage)
{
	write_file($damage{$name}->($good));
	my $offset = log_size($node);

	ok($node->start(fail_ok => 1), "file $name: server starts");
	$observer = PgNetlat::Observer->connect($node);
	is($observer->client('keeper'), undef, "file $name: is not loaded");
	is($observer->value('SELECT count(*) FROM pgnetlat_sessions'),
		1, "file $name: sessions are counted");
	like(
		server_log($node, $offset),
		qr/LOG: .*pgnetlat\.stat/,
		"file $name: is logged");
	$node->stop('immediate');
}

write_file($good);
$node->start;
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper')->{requests}, $saved, 'a good file is loaded');

# ---------------------------------------------------------------------------
# Other limits than those under which it was saved, and not saving
# ---------------------------------------------------------------------------

$observer->run(
	'ALTER SYSTEM SET pgnetlat.max_statements = 100',
	'ALTER SYSTEM SET pgnetlat.max_clients = 10',
	'ALTER SYSTEM SET pgnetlat.history_size = 2',
	'ALTER SYSTEM SET pgnetlat.recorder_size = 16');
run_statements("many $_") foreach 1 .. 15;
restart('fast');
is( $observer->value(
		q{SELECT sum(requests) >= 150 FROM pgnetlat_clients
		  WHERE application_name IS DISTINCT FROM 'observer'}),
	't',
	'what does not fit after a restart is in the row of others');
is($observer->value('SELECT clients_max FROM pgnetlat_info'), 10, 'fewer groups');

$observer->run('ALTER SYSTEM SET pgnetlat.save = off', 'SELECT pg_reload_conf()');
$node->stop('fast');
ok(!-e $file, 'nothing is saved without pgnetlat.save');
$node->start;
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper'), undef, 'nothing is loaded without pgnetlat.save');

no_violations($observer);
$node->stop;
done_testing();
