
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

Conversation - what random clients say to a server

=head1 DESCRIPTION

All of it comes from rand(), so that a seed brings a connection back.

=cut

package Conversation;

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(min shuffle);
use PgNetlat::Client;

our @EXPORT_OK =
  qw(any_bytes any_name any_packet chance damaged messages pick valid_requests);

sub pick   { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }

sub any_bytes
{
	my ($most) = @_;

	return pack('C*', map { rand 256 } 1 .. rand $most + 1);
}

# A length that is wrong, most likely.
sub any_length
{
	return pick(
		0 .. 9, 12, 16, 264,
		9_999, 10_000, 10_001, 1 << 20,
		1 << 30, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF,
		0x80000000, 0xFFFFFFFF, int rand 300);
}

# An application_name, few of them more often than once.
sub any_name
{
	my $name = chance(0.02) ? any_bytes(200) : 'fuzz ' . int rand 40;

	return $name =~ s/\0/0/gr;
}

# ---------------------------------------------------------------------------
# Before a session: packets without a type
# ---------------------------------------------------------------------------

sub packet { return pack('N', 4 + length $_[0]) . $_[0]; }

my %request = (cancel => 80_877_102, tls => 80_877_103, gss => 80_877_104);

sub startup
{
	my ($version, @parameters) = @_;

	return packet(
		pack('N', $version) . join('', map { "$_\0" } @parameters) . "\0");
}

# Asks to start, or to do something else, mostly in a wrong way.
sub any_packet
{
	my ($user) = @_;
	my @who = (user => $user, database => 'postgres');
	my @packets = (
		'',
		any_bytes(40),
		pack('N', any_length()) . any_bytes(20),
		packet(pack('N', rand 1 << 32)),
		packet(pack('N', $request{tls})),
		packet(pack('N', $request{tls})) x 2,
		packet(pack('N', $request{gss})),
		packet(pack('N', $request{gss})) . packet(pack('N', $request{tls})),
		packet(pack('N', $request{tls})) . startup(0x30000, @who),
		packet(pack('N', $request{tls}) . any_bytes(8)),
		packet(pack('N N N', $request{cancel}, rand 40_000, rand 1 << 32)),
		packet(pack('N', $request{cancel}) . any_bytes(300)),
		startup(pick(0, 0x20000, 0x30000 + int(rand 300), 0x40000), @who),
		startup(0x30000),
		startup(0x30000, user => $user, database => 'nowhere'),
		startup(0x30000, user => 'nobody of this name'),
		startup(0x30000, @who, options => '-c no.such=1 -c work_mem=x'),
		startup(0x30000, @who, replication => pick('true', 'maybe', 'on')),
		startup(0x30000, @who, client_encoding => 'none'),
		startup(0x30002, @who, '_pq_.unheard_of' => 1),
		startup(0x30000, @who, 'odd'),
		startup(0x30000, @who, application_name => 'x' x rand 11_000),
		packet(pack('N', 0x30000) . "user\0$user"),
		startup(0x30000, @who, application_name => any_name())
		  . join('', messages()));
	my $packet = pick(@packets);

	return chance(0.2) ? substr($packet, 0, rand length $packet) : $packet;
}

# ---------------------------------------------------------------------------
# In a session
# ---------------------------------------------------------------------------

my @sql = (
	'SELECT 1',
	'SELECT 1; SELECT 2',
	'SELECT 1/0',
	'SELECT 1; SELECT 1/0; SELECT 3',
	'SELEC',
	'',
	';',
	'SELECT generate_series(1, 1000)',
	"SELECT repeat('x', 50000)",
	'TABLE sink',
	"INSERT INTO sink VALUES ('x')",
	'SHOW work_mem',
	"DO \$\$ BEGIN RAISE NOTICE 'noticed'; END \$\$",
	"DO \$\$ BEGIN RAISE EXCEPTION 'raised'; EXCEPTION WHEN OTHERS THEN NULL; END \$\$",
	'COPY (SELECT generate_series(1, 200)) TO STDOUT');

# These leave something behind, or the session.
my @lasting = (
	'BEGIN',
	'COMMIT',
	'ROLLBACK',
	'SAVEPOINT a',
	'ROLLBACK TO a',
	'BEGIN; DECLARE c CURSOR FOR SELECT generate_series(1, 100)',
	'FETCH 10 FROM c',
	'LISTEN here',
	'NOTIFY here',
	'BEGIN; NOTIFY here; COMMIT',
	'PREPARE p AS SELECT 1',
	'EXECUTE p',
	'DISCARD ALL',
	'RESET ALL',
	'SET statement_timeout = 1',
	'SELECT pg_sleep(0.005)',
	'SET idle_in_transaction_session_timeout = 1',
	'SET idle_session_timeout = 1',
	'SET client_encoding = latin1',
	"SET client_min_messages = 'debug1'",
	'SET pgnetlat.track_statements = off',
	'SELECT pg_terminate_backend(pg_backend_pid())',
	'SELECT pg_cancel_backend(pg_backend_pid())',
	'SELECT count(*) FROM pgnetlat_sessions',
	'SELECT count(*) FROM pgnetlat_clients',
	'COPY sink FROM STDIN',
	'CREATE TEMP TABLE mine (a int)',
	'IDENTIFY_SYSTEM',
	'VACUUM nothing',
	'SET application_name = changed');

my $copies = 'COPY sink FROM STDIN';

# abs(integer)
my $ABS = 1397;

sub copied
{
	return map { copy_data("row $_\n" x (1 + rand 300)) } 1 .. rand 4;
}

# A request of which it is known that it gets one ReadyForQuery, whole: bytes.
sub valid_request
{
	my $sql = pick(grep { !/;./ } @sql);

	return pick(
		query("SET application_name = 'valid " . int(rand 200) . q{'}),
		query(pick(@sql)),
		query(pick(@sql)),
		extended($sql) . sync(),
		parse('', 'SELECT $1::int')
		  . bind_('', '', int rand 9)
		  . describe('P', '')
		  . execute('')
		  . sync(),
		parse('', 'SELECT $1::int')
		  . describe('S', '')
		  . bind_('', '', undef)
		  . execute('')
		  . sync(),
		extended('SELECT 1') . extended('SELECT 2') . sync(),
		extended('SELECT 1')
		  . extended('SELECT 1/0')
		  . extended('SELECT 2')
		  . sync(),
		parse('s', 'SELECT 1') . close_('S', 's') . sync(),
		close_('P', 'none') . sync(),
		bind_('', 'none') . sync(),
		sync(),
		function_call($ABS, -5),
		function_call(0),
		query($copies) . join('', copied(), copy_done()),
		query($copies) . join('', copied(), copy_fail('no more')),
		query('COPY sink FROM nothing'),
		extended($copies) . join('', copied(), copy_done(), sync()));
}

sub valid_requests
{
	return map { valid_request() } 1 .. 1 + rand 8;
}

# A message that is well-formed, whether it fits or not.
sub any_message
{
	my $name = pick('', '', 'a', 'b');

	return pick(
		query(pick(@sql, @lasting)),
		query(pick(@lasting)),
		valid_request(),
		parse($name, pick(@sql, @lasting, 'SELECT $1::int')),
		bind_(pick('', 'a'), $name, chance(0.5) ? (int rand 9) : ()),
		describe(pick('P', 'S', 'X'), $name),
		execute(pick('', 'a'), int rand 4),
		close_(pick('P', 'S', 'X'), $name),
		extended(pick(@sql, @lasting)),
		parse('', 'SELECT generate_series(1, 30)')
		  . bind_('', '')
		  . execute('', 10) x (1 + rand 4),
		sync(),
		sync(),
		flush(),
		copy_data("row\n"),
		copy_data(any_bytes(100)),
		copy_done(),
		copy_fail('failed'),
		function_call(
			pick($ABS, 0, int rand 9999),
			map { int rand 9 } 1 .. rand 3),
		message('p', any_bytes(30)),
		terminate());
}

# A message that the server cannot read as it is.
sub damaged
{
	my ($message) = @_;
	my $how = int rand 7;

	if ($how == 0)
	{
		substr($message, 0, 1) = chr rand 256;
	}
	elsif ($how == 1)
	{
		substr($message, 1, 4) = pack('N', any_length());
	}
	elsif ($how == 2)
	{
		$message = substr($message, 0, rand length $message);
	}
	elsif ($how == 3)
	{
		substr($message, rand length $message, 1) = chr rand 256;
	}
	elsif ($how == 4)
	{
		$message = any_bytes(30);
	}
	elsif ($how == 5)
	{
		# larger than any buffer
		$message = message(pick('Q', 'P', 'B', 'd', 'F', 'X'),
			any_bytes(64) x rand 3000);
	}
	else
	{
		$message .= any_bytes(10);
	}
	return $message;
}

# Messages in some order, a few of them damaged.
sub messages
{
	my @messages = map { any_message() } 1 .. rand 12;

	@messages = shuffle(@messages) if chance(0.1);
	if (@messages and chance(0.5))
	{
		my $which = rand @messages;
		$messages[$which] = damaged($messages[$which]);
	}
	return @messages;
}

1;
