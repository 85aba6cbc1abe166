
# Copyright (c) 2026, the pgnetlat authors

# Saved statistics survive a clean restart and a failed start, but not a crash;
# damaged and foreign files are not loaded.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
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

# Lets a session of this name block another one.
sub hold_up
{
	my ($name) = @_;
	my ($holder, $victim) =
	  map { PgNetlat::Client->connect($node, application_name => $_) } $name,
	  'blocked';

	$holder->run('SELECT pg_advisory_lock(1)');
	$victim->put(query('SELECT pg_advisory_lock(1)'));
	$observer->poll(
		sub {
			$observer->value(
					'SELECT blocked_time > 200 FROM pgnetlat_blockers'
				  . " WHERE application_name = '$name' AND blocked_sessions = 1"
			) eq 't';
		});
	$holder->finish;
	$victim->responses;
	$victim->finish;
	return $observer->poll(
		sub {
			my ($row) = $observer->blockers("application_name = '$name'");
			return $row->{blocked_sessions} == 0 ? $row : undef;
		});
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
is( saved_statement(),
	'10 calls, 70 rows',
	'statements are counted before a restart');
my $blocker = hold_up('holder');
my ($histogram) = $observer->rows(
	q{SELECT count, sum FROM pgnetlat_histogram
	  WHERE application_name = 'keeper' AND metric = 'request' AND le = '+Inf'});
my $reset = $observer->value('SELECT stats_reset FROM pgnetlat_info');
restart('fast');

my $after = $observer->client('keeper');
ok($after, 'the client group is there after a clean restart');
is($after->{$_} // 'NULL', $sum->{$_}, "$_ of a client group is kept")
  foreach qw(requests statements transactions pipelined round_trips bytes_sent
  ended_sessions sessions);
cmp_ok(abs($after->{total_time} - $sum->{total_time}),
	'<', 1e-3, 'total_time of a client group is kept');
is( saved_statement(),
	'10 calls, 70 rows',
	'statements are kept by a clean restart');
my ($histogram_after) = $observer->rows(
	q{SELECT count, sum FROM pgnetlat_histogram
	  WHERE application_name = 'keeper' AND metric = 'request' AND le = '+Inf'});
is($histogram_after->{count},
	$histogram->{count}, 'histograms are kept by a clean restart');
my ($blocker_after) = $observer->blockers(q{application_name = 'holder'});
is($blocker_after->{$_}, $blocker->{$_}, "$_ of a blocker is kept")
  foreach grep { $_ ne 'blocked_sessions' } sort keys %$blocker;
is($blocker_after->{blocked_sessions}, 0, 'no session waits after a restart');
is( $observer->value(
		q{SELECT count(*) > 0 FROM pgnetlat_history WHERE bucket_start <
		  pg_postmaster_start_time()}),
	't',
	'history is kept by a clean restart');
is($observer->value('SELECT stats_reset FROM pgnetlat_info'),
	$reset, 'the moment of the latest reset is kept');
ok( $observer->poll(sub { !-e $file }),
	'the file is gone once the server is up');

# it goes on from there
run_statements('keeper');
is($observer->client('keeper')->{requests}, 20, 'saved statistics grow');
is(saved_statement(), '20 calls, 140 rows', 'saved statements grow');

# sessions that are still there at shutdown count as well
my $client = PgNetlat::Client->connect($node, application_name => 'cut off');
$client->run(('SELECT 1') x 3);
restart('fast');
is($observer->client('cut off')->{requests},
	3, 'sessions ended by the shutdown are saved');
is($observer->client('keeper')->{requests},
	20, 'a second restart counts nothing twice');

# ---------------------------------------------------------------------------
# Not after a crash
# ---------------------------------------------------------------------------

restart('immediate');
is($observer->client('keeper'),
	undef, 'nothing is loaded after an immediate shutdown');
is( saved_statement(),
	'0 calls, 0 rows',
	'no statement is loaded after an immediate shutdown');

# a file from before, put back as a base backup might
run_statements('keeper');
$node->stop('fast');
my $stale = read_file();
$node->start;
$observer = PgNetlat::Observer->connect($node);
ok($observer->poll(sub { !-e $file }), 'the file is gone before the crash');
$node->stop('immediate');
write_file($stale);
my $offset = log_size($node);
$node->start;
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper'), undef, 'a file is not loaded after a crash');
like(
	server_log($node, $offset),
	qr/DETAIL:  The server was not shut down cleanly/,
	'the reason is logged');
ok(!-e $file, 'a file that is not loaded is removed');

# ---------------------------------------------------------------------------
# A start that fails
# ---------------------------------------------------------------------------

# Fails after everything has been loaded: core reads pg_hba.conf late.
sub failing_start
{
	my ($name) = @_;
	my $hba = $node->data_dir . '/pg_hba.conf';
	my $content = slurp_file($hba);

	append_to_file($hba, "not a line of it\n");
	ok(!$node->start(fail_ok => 1),
		"failing start $name: the server does not start");
	ok(-s $file, "failing start $name: the file stays");
	unlink $hba;
	append_to_file($hba, $content);
	return;
}

run_statements('keeper');
$node->stop('fast');
failing_start('with saved statistics');
failing_start('twice');
$node->start;
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper')->{requests},
	10, 'after two failed starts: client groups are loaded');
is( saved_statement(),
	'10 calls, 70 rows',
	'after two failed starts: statements are loaded');

# by a server that does not load it, either
$node->stop('fast');
$node->append_conf('postgresql.conf', 'pgnetlat.save = off');
failing_start('without pgnetlat.save');
$node->append_conf('postgresql.conf', 'pgnetlat.save = on');
$node->start;
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper')->{requests},
	10, 'after a failed start without pgnetlat.save: all is loaded');

# nor is the sampler needed
$node->stop('fast');
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->start;
ok(-s $file, 'without the sampler: the file stays until the first session');
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper')->{requests},
	10, 'without the sampler: it is loaded');
ok(!-e $file, 'without the sampler: the first session removes it');
$node->stop('fast');
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->start;
$observer = PgNetlat::Observer->connect($node);

# nothing comes back twice
ok($observer->poll(sub { !-e $file }),
	'the file is gone once the server has come up');
restart('immediate');
is($observer->client('keeper'), undef, 'a crash after that loses everything');

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
hold_up('holder');
$node->stop('fast');
ok(-s $file, 'the file is there while the server is down');
my $good = read_file();

# 3 GB, none of which is on the disk
sub make_huge
{
	truncate $file, 3 << 30 or die "could not extend $file: $!";
	return;
}

sub make_pipe
{
	unlink $file;
	system('mkfifo', $file) == 0 or die "could not make a pipe: $?";
	return;
}
foreach ([ \&make_huge, 'is too large' ],
	[ \&make_pipe, 'is not a regular file' ])
{
	my ($make, $why) = @$_;

	write_file($good);
	$make->();
	$offset = log_size($node);
	ok($node->start(fail_ok => 1), "file that $why: the server starts");
	$observer = PgNetlat::Observer->connect($node);
	is($observer->client('keeper'),
		undef, "file that $why: it is not loaded");
	like(
		server_log($node, $offset),
		qr/DETAIL:  It $why\./,
		"file that $why: that is logged");
	$node->stop('fast');
}

foreach my $name (sort keys %damage)
{
	write_file($damage{$name}->($good));
	$offset = log_size($node);

	ok($node->start(fail_ok => 1), "file $name: the server starts");
	$observer = PgNetlat::Observer->connect($node);
	is($observer->client('keeper'), undef, "file $name: it is not loaded");
	is($observer->value('SELECT count(*) FROM pgnetlat_sessions'),
		1, "file $name: sessions are counted");
	like(
		server_log($node, $offset),
		qr/LOG:  ignoring file "pg_stat\/pgnetlat\.stat"/,
		"file $name: ignoring it is logged");
	$node->stop('fast');
}

# What the server logs about a file, if anything; without a postmaster, which is
# faster.
sub complaint_about
{
	my ($content) = @_;
	my $log = '';

	write_file($content);
	IPC::Run::run(
		[
			'postgres', '--single',
			'-F', '-c',
			'log_min_messages=log', '-D',
			$node->data_dir, 'postgres'
		],
		'<',
		\'',
		'>',
		\my $out,
		'2>',
		\$log);
	return
		$log =~ /ignoring file.*?DETAIL:  ([^\n]*)/s ? $1
	  : $log =~ /(ignoring \d.*? file) "[^"]*"\n.*?DETAIL:  ([^\n]*)/s
	  ? "$1: $2"
	  : $log =~ /(FATAL|ERROR|PANIC)/ ? $log
	  :                                 '';
}

is(complaint_about($good), '', 'nothing is logged about a good file');
is( complaint_about("\0" . substr($good, 1)),
	'It has a different format, such as that of another version.  Statistics of pgnetlat start from zero.',
	'a foreign file is not loaded, and the reason is logged');

# The header: magic, layout, major, sizes of an entry of each section (a
# statement, a client, an interval, a blocker, a pool), the latest reset, the file's inode.  Then
# for each section the number of its entries, and these; at last the checksum.
my $sections = 5;
my $header_length = 28 + 4 * $sections;
my (undef, undef, undef, @sizes) = unpack('L' . (3 + $sections), $good);
my @good;    # the entries of each section
my $at = $header_length;
foreach my $size (@sizes)
{
	my $count = unpack('q', substr($good, $at, 8));

	push @good, [ unpack("x" . ($at + 8) . " (a$size)$count", $good) ];
	$at += 8 + $count * $size;
}
is($at, length($good) - 4, 'the test knows the format');
is(scalar @{ $good[3] }, 1, 'the file has a blocker');

# Every byte of the header, and some of what follows.
srand(1);
my @accepted;
foreach my $byte (
	0 .. $header_length + 7,
	map { $header_length + int(rand(length($good) - $header_length)) }
	1 .. 12)
{
	my $content = $good;

	substr($content, $byte, 1) ^= chr(1 + int(rand(255)));
	my $complaint = complaint_about($content);
	push @accepted, "$byte: $complaint"
	  if $complaint !~ /^It is |^It has a different format/;
}
is(join("\n", @accepted), '', 'a file with one wrong byte is never loaded');

# ---------------------------------------------------------------------------
# Files with a good checksum that are for another server
# ---------------------------------------------------------------------------

my @crc_table;
foreach my $byte (0 .. 255)
{
	my $crc = $byte;

	$crc = $crc & 1 ? $crc >> 1 ^ 0x82F63B78 : $crc >> 1 for 1 .. 8;
	push @crc_table, $crc;
}

sub with_checksum
{
	my ($content) = @_;
	my $crc = 0xFFFFFFFF;

	$content = substr($content, 0, -4);
	$crc = $crc_table[ ($crc ^ $_) & 0xFF ] ^ $crc >> 8
	  foreach unpack('C*', $content);
	return $content . pack('L', $crc ^ 0xFFFFFFFF);
}

# A file of these entries.
sub file_of
{
	my (@entries) = @_;

	return with_checksum(
		join('',
			substr($good, 0, $header_length),
			(map { pack('q', scalar @$_), @$_ } @entries),
			"\0" x 4));
}

is(file_of(@good), $good, 'the test knows the checksum');

foreach my $what (
	[ 0, 'another kind', 'It has a different format' ],
	[ 4, 'another layout', 'It has a different format' ],
	[ 8, 'another major version', 'It has a different format' ],
	[ 12, 'entries of another size', 'It has a different format' ],
	[ $header_length, 'another number of entries', 'It is truncated' ])
{
	my ($byte, $name, $complaint) = @$what;
	my $content = $good;

	substr($content, $byte, 4) =
	  pack('L', unpack('L', substr($content, $byte, 4)) + 1_000_000);
	like(complaint_about(with_checksum($content)),
		qr/^$complaint/, "a file with $name is not loaded");
}

# Rows of more databases than there are places for: the row of all others stays
# in its own, wherever it was in the file.
my $other = $good[1][0];
substr($other, 0, 92) = "\0" x 92;
substr($other, 92, 1) = "\1";
my @others = map { pack('L', $_) . substr($other, 4) } 0, 100_001 .. 100_015;
write_file(file_of($good[0], \@others, @good[ 2 .. 4 ]));
$node->start;
$observer = PgNetlat::Observer->connect($node);
is( $observer->value(
		q{SELECT string_agg(coalesce(datid::text, 'others'), ' ' ORDER BY datid)
		  FROM pgnetlat_clients WHERE usesysid IS NULL}),
	join(' ', 100_001 .. 100_015, 'others'),
	'evicted rows come back in their places');
$node->stop('fast');

write_file($good);
$node->start;
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper')->{requests}, $saved, 'a good file is loaded');

# Idle time that has come to its limit; it is four numbers before the requests.
my ($keeper) = grep { /keeper\0/ } @{ $good[1] };
my ($requests) = grep { unpack("x$_ q", $keeper) == $saved }
  map { $_ * 8 } 12 .. length($keeper) / 8 - 1;
substr($keeper, $requests - 32, 8) = pack('q', 2**62 - 10**9);
$node->stop('fast');
write_file(file_of($good[0], [$keeper], @good[ 2 .. 4 ]));
$node->start;
$observer = PgNetlat::Observer->connect($node);
my $limit = 2**62 / 1e6;
cmp_ok($limit - $observer->client('keeper')->{idle_time},
	'>', 900, 'a group has been idle for almost 146 years');
my $idle = PgNetlat::Client->connect($node, application_name => 'keeper');
ok( $observer->poll(
		sub {
			my $account = $observer->account($idle->pid);
			return $account && $account->{idle_time} > 1100;
		}),
	'a session of the group is idle');
cmp_ok(abs($limit - $observer->client('keeper')->{idle_time}),
	'<', 0.01, 'idle time of a group stops at 146 years');
$idle->finish;
$node->stop('fast');

# ---------------------------------------------------------------------------
# Files with a good checksum that hold damaged entries
# ---------------------------------------------------------------------------

# An entry with other bytes, or another number, at some places.
sub changed
{
	my ($entry, %changes) = @_;

	while (my ($place, $value) = each %changes)
	{
		$value = pack('q', $value) if $value =~ /^-?[0-9]+$/;
		substr($entry, $place, length $value) = $value;
	}
	return $entry;
}

# Where a client's name and the number of its sessions are.
my ($name, $sessions) = (28, 136);

# Nearly the largest figure that is accepted.  Its negative is before any timestamp.
my $most = (1 << 62) - 10**9;

# An interval begins with its times; before "since", others have a key and "usage".
write_file(
	file_of(
		[
			changed($good[0][0], 8 => 1, 24 => -$most),
			changed($good[0][0], 8 => 2, 32 => -1),
			map { changed($good[0][0], 8 => 3, 32 => $_) } 10,
			20
		],
		[
			changed($keeper, $sessions => -5),
			changed($keeper, $name => "no text \xC3\x28\0"),
			changed($keeper, $name => 'x' x 64),
			changed($keeper, $name => "early\0", 104 => -$most),
			changed($keeper, $name => "late\0", 104 => $most),
			changed($keeper, $name => "less\0", $requests => -1),
			changed($keeper, $name => "more\0", $requests => 2 * $most),
			map { changed($keeper, $name => "$_\0", $requests => $most) }
			  qw(first second third)
		],
		[
			changed($good[2][0], 0 => -$most),
			changed($good[2][0], 8 => -$most)
		],
		[ map { changed($good[3][0], $_ => 'x' x 64) } $name, 92 ],
		[ changed($good[4][0], 24 => -$most) ]));
$offset = log_size($node);
$node->start;
$observer = PgNetlat::Observer->connect($node);
like(
	server_log($node, $offset),
	qr/LOG:  ignoring 14 damaged entries in file "pg_stat\/pgnetlat\.stat"/,
	'damaged entries are not loaded, and their number is logged');
is( $observer->value(
		q{SELECT string_agg(application_name, ' ' ORDER BY application_name)
		  FROM pgnetlat_clients WHERE ended_sessions > 0}),
	'first keeper late',
	'the others are loaded');
is( $observer->value(
			'SELECT coalesce(sum(calls), 0) FROM pgnetlat_statements_last()'
		  . ' WHERE queryid = 3'),
	0,
	'an entry that is in the file twice does not count in a window');

# Everything that shows them, and anything that adds to them.
my @shown = map { $_->{object} } $observer->rows(
	q{SELECT c.relname AS object FROM pg_class c
	   WHERE c.relkind = 'v' AND c.relname LIKE 'pgnetlat%'
	   UNION ALL
	  SELECT p.proname || '()' FROM pg_proc p
	   WHERE p.pronargs = p.pronargdefaults AND p.proname LIKE 'pgnetlat%'
		 AND p.proname NOT LIKE '%reset%' AND p.proname <> 'pgnetlat_guard_check'
	   ORDER BY 1});
cmp_ok(scalar @shown, '>', 50, 'there are views and functions');
my $added = PgNetlat::Client->connect($node, application_name => 'keeper');
$added->run('SELECT 1');
is( join("\n",
		grep { $_ ne '' }
		map  { $observer->error_of("SELECT * FROM $_") } @shown),
	'',
	'no view and no function raises an error');
is( $observer->value(
		q{SELECT sessions FROM pgnetlat_clients WHERE application_name = 'keeper'}
	),
	1,
	'the number of sessions is not taken from the file');
$added->finish;
$node->stop('fast');
unlike(
	server_log($node, $offset),
	qr/TRAP:|was terminated/,
	'no assertion fails until the server is down');

like(
	complaint_about(
		with_checksum(changed($good, $header_length - 16 => -$most))),
	qr/^It is truncated or damaged/,
	'a file whose reset time is invalid is not loaded');

write_file($good);
$node->start;
$observer = PgNetlat::Observer->connect($node);

# ---------------------------------------------------------------------------
# Files with a good checksum and any figures
# ---------------------------------------------------------------------------

# Entries with another key each, and one figure or two, from the first on, that are near a
# limit: some are out of range, what is accepted must be shown.
sub with_extremes
{
	my ($entry, $key, $first, $number) = @_;
	my @places = map { $_ * 8 } $first / 8 .. length($entry) / 8 - 1;

	return map {
		changed(
			$entry,
			@$key[0] => @$key[1]->($_),
			map { $places[ rand @places ] => $most - int(rand(10)) }
			  1 .. 1 + int(rand(2)))
	} 1 .. $number;
}
$node->stop('fast');
foreach my $round (1 .. 2)
{
	my $name_of = sub { "extreme $_[0]\0" };

	write_file(
		file_of(
			[
				with_extremes(
					$good[0][0], [ 8 => sub { pack('q', $_[0]) } ],
					24, 300)
			],
			[ with_extremes($keeper, [ $name => $name_of ], 104, 300) ],
			[
				with_extremes(
					$good[2][0], [ 0 => sub { substr($good[2][0], 0, 8) } ],
					24, 3)
			],
			[ with_extremes($good[3][0], [ $name => $name_of ], 176, 100) ],
			[
				with_extremes(
					$good[4][0], [ 4 => sub { pack('L', 100_000 + $_[0]) } ],
					24, 50)
			]));
	$node->start;
	$observer = PgNetlat::Observer->connect($node);
	cmp_ok(
		$observer->value(
			q{SELECT count(*) FROM pgnetlat_clients WHERE application_name LIKE 'extreme%'}
		),
		'>', 0,
		"extreme figures $round: some are loaded");
	is( join("\n",
			grep { $_ ne '' }
			map  { $observer->error_of("SELECT * FROM $_") } @shown),
		'',
		"extreme figures $round: no view and no function raises an error");
	my @negative = map {
		my $view = $_;
		my @columns = map { $_->{attname} } $observer->rows(
			"SELECT attname FROM pg_attribute WHERE attrelid = '$view'::regclass
			    AND attnum > 0 AND attname NOT LIKE '%queryid'
			    AND atttypid IN ('float8'::regtype, 'int8'::regtype)");
		@columns
		  ? $observer->value(
			'SELECT concat_ws(\' \', '
			  . join(', ',
				map { "CASE WHEN bool_or($_ < 0) THEN '$view.$_' END" }
				  @columns)
			  . ") FROM $view")
		  : '';
	} grep { !/\(/ } @shown;
	is(join(' ', grep { $_ ne '' } @negative),
		'', "extreme figures $round: none is negative");
	$node->stop('fast');
}
write_file($good);
$node->start;
$observer = PgNetlat::Observer->connect($node);

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
	'what does not fit after a restart is in the evicted row');
is($observer->value('SELECT clients_max FROM pgnetlat_info'),
	10, 'clients_max is lower after the restart');

$observer->run('ALTER SYSTEM SET pgnetlat.save = off',
	'SELECT pg_reload_conf()');
$node->stop('fast');
ok(!-e $file, 'nothing is saved without pgnetlat.save');
$node->start;
$observer = PgNetlat::Observer->connect($node);
is($observer->client('keeper'),
	undef, 'nothing is loaded without pgnetlat.save');

# ---------------------------------------------------------------------------
# No memory to save with
# ---------------------------------------------------------------------------

SKIP:
{
	skip('there is no prlimit', 3)
	  unless eval { run_log([ 'prlimit', '--version' ]) };
	my $postmaster =
	  (split "\n", slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my ($size) =
	  slurp_file("/proc/$postmaster/status") =~ /^VmSize:\s*(\d+) kB/m;

	$observer->run('ALTER SYSTEM RESET ALL', 'SELECT pg_reload_conf()');
	$observer->poll(sub { $observer->value('SHOW pgnetlat.save') eq 'on' });
	$offset = log_size($node);
	run_log([ 'prlimit', "--pid=$postmaster", '--as=' . $size * 1024 . ':' ]);
	$node->stop('fast');
	my $log = server_log($node, $offset);
	like(
		$log,
		qr/could not write file "pg_stat\/pgnetlat\.stat"/,
		'without memory to save with: that is logged');
	unlike(
		$log,
		qr/FATAL:  out of memory/,
		'without memory to save with: the postmaster ends as usual');
	ok(!-e "$file.tmp" && !-e $file,
		'without memory to save with: no file is left');
	$node->start;
	$observer = PgNetlat::Observer->connect($node);
}

no_violations($observer);
$node->stop;
done_testing();
