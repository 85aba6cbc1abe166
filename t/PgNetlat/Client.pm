
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

PgNetlat::Client - a client that sends exactly the messages it is told to

=head1 DESCRIPTION

Drivers hide when messages leave and when they are read.  The tests need a
client that does one known thing for a known time, so this one speaks the
frontend/backend protocol (version 3.0) itself: functions build messages,
methods send bytes and read messages, each when the test says so.

Every wait has a limit, PG_TEST_TIMEOUT_DEFAULT seconds, and dies beyond it.

=cut

package PgNetlat::Client;

use strict;
use warnings;

use Exporter 'import';
use IO::Select;
use PostgreSQL::Test::Utils ();
use Socket                  qw(:all);
use Time::HiRes             qw(clock_gettime CLOCK_MONOTONIC);

our @EXPORT = qw(
  bind_ close_ copy_data copy_done copy_fail describe execute extended flush
  function_call message parse query sync terminate
);

# ---------------------------------------------------------------------------
# Messages.  Named as in the protocol's documentation; bind_ and close_, since
# Perl has functions named bind and close.
# ---------------------------------------------------------------------------

sub message
{
	my ($type, $body) = @_;
	return $type . pack('N', 4 + length($body)) . $body;
}

sub query { return message('Q', "$_[0]\0"); }

sub parse
{
	my ($name, $sql) = @_;
	return message('P', "$name\0$sql\0" . pack('n', 0));
}

# Parameters and results are text; undef is NULL.
sub bind_
{
	my ($portal, $statement, @values) = @_;
	my $body = "$portal\0$statement\0" . pack('n n', 0, scalar @values);

	$body .= defined $_ ? pack('N/a*', $_) : pack('N', 0xFFFFFFFF)
	  foreach @values;
	return message('B', $body . pack('n', 0));
}

# Of a portal ('P') or a statement ('S').
sub describe { return message('D', "$_[0]$_[1]\0"); }
sub close_   { return message('C', "$_[0]$_[1]\0"); }

sub execute
{
	my ($portal, $max_rows) = @_;
	return message('E', "$portal\0" . pack('N', $max_rows // 0));
}

# A statement in the extended protocol, without the Sync behind it.
sub extended
{
	my ($sql, @values) = @_;
	return parse('', $sql) . bind_('', '', @values) . execute('');
}

sub sync      { return message('S', ''); }
sub flush     { return message('H', ''); }
sub terminate { return message('X', ''); }

# Arguments and result are text.
sub function_call
{
	my ($oid, @arguments) = @_;
	my $body = pack('N n n', $oid, 0, scalar @arguments);

	$body .= pack('N/a*', $_) foreach @arguments;
	return message('F', $body . pack('n', 0));
}

sub copy_data { return message('d', $_[0]); }
sub copy_done { return message('c', ''); }
sub copy_fail { return message('f', "$_[0]\0"); }

# ---------------------------------------------------------------------------
# Connections
# ---------------------------------------------------------------------------

# Connects over the node's Unix-domain socket, with tcp => 1 to 127.0.0.1, or
# with tcp => 6 to ::1.
# Other options: user, dbname, application_name, options (as in PGOPTIONS),
# receive_buffer (bytes; small ones make the server block soon), early (bytes
# to be sent before the server has answered anything), local_port (for TCP),
# replication ('true' or 'database': the server's process is a walsender),
# protocol (its version, 0x30000 by default),
# before_startup (called with the client when its socket is connected), and
# authenticate (called with the number and the data of each question of
# authentication, returns the answer: a message), startup (which parameters to
# send; all of them unless told otherwise).
sub connect
{
	my ($class, $node, %options) = @_;

	return $class->begin_connecting($node, %options)->be_ready;
}

# The same with this application_name.
sub named
{
	my ($class, $node, $name, %options) = @_;

	return $class->connect($node, application_name => $name, %options);
}

# A connection on which nothing has been sent yet.
sub silent
{
	my ($class, $node, %options) = @_;
	my $self = bless {
		node => $node,
		tcp => $options{tcp},
		received => 0,
		sent => 0,
		responses => 0,
		authenticate => $options{authenticate},
		buffer => ''
	}, $class;

	$self->_open_socket(%options);
	return $self;
}

# The same in two steps: what the client sends ...
sub begin_connecting
{
	my ($class, $node, %options) = @_;
	my $self = $class->silent($node, %options);
	my %startup = (
		user => $options{user} // scalar getpwuid($<),
		database => $options{dbname} // 'postgres',
		application_name => $options{application_name} // 'client',
		options => $options{options} // '');
	$startup{replication} = $options{replication} if $options{replication};
	my $body = pack('N', $options{protocol} // 0x30000)
	  . join('',
		map { "$_\0$startup{$_}\0" }
		  @{ $options{startup} // [ sort keys %startup ] })
	  . "\0";
	$options{before_startup}->($self) if $options{before_startup};
	$self->put(
		pack('N', 4 + length($body)) . $body . ($options{early} // ''));
	return $self;
}

# ... and what the server answers, until it is ready for a query.
sub be_ready
{
	my ($self) = @_;

	for (my $type = ''; $type ne 'Z';)
	{
		my $m = ($self->until('RKEZv'))[-1];

		$type = $m->{type};
		$self->_authenticate($m->{body})
		  if $type eq 'R';
		($self->{pid}, $self->{secret}) = unpack('N a*', $m->{body})
		  if $type eq 'K';
		$self->{negotiated} = unpack('N', $m->{body})
		  if $type eq 'v';
		die "connection refused: $m->{error}{M}\n" if $type eq 'E';
	}
	$self->begin_anew;
	return $self;
}

# Answers an authentication request, if the message is one.
sub _authenticate
{
	my ($self, $body) = @_;
	my ($number, $data) = unpack('N a*', $body);

	# it is over, or about to be
	return if $number == 0 or $number == 12;
	die "the server wants authentication (type $number)\n"
	  unless $self->{authenticate};
	$self->put($self->{authenticate}->($number, $data));
	return;
}

# Reads a byte outside any message: the server's answer to a request for
# encryption.
sub read_byte
{
	my ($self) = @_;

	$self->_fill(_deadline(), 'a byte') or return;
	return substr($self->{buffer}, 0, 1, '');
}

sub _open_socket
{
	my ($self, %options) = @_;
	my $port = $self->{node}->port;
	my $path = $self->{node}->host;
	my ($socket, $address);

	if ($self->{tcp} and $self->{tcp} == 6)
	{
		socket($socket, PF_INET6, SOCK_STREAM, 0) or die "socket: $!\n";
		setsockopt($socket, IPPROTO_TCP, TCP_NODELAY, 1);
		$address = pack_sockaddr_in6($port, inet_pton(AF_INET6, '::1'));
	}
	elsif ($self->{tcp})
	{
		socket($socket, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
		setsockopt($socket, IPPROTO_TCP, TCP_NODELAY, 1);
		$address = pack_sockaddr_in($port, inet_aton('127.0.0.1'));
	}
	else
	{
		socket($socket, PF_UNIX, SOCK_STREAM, 0) or die "socket: $!\n";
		$address = pack_sockaddr_un("$path/.s.PGSQL.$port");
	}
	setsockopt($socket, SOL_SOCKET, SO_RCVBUF, $options{receive_buffer})
	  if $options{receive_buffer};
	if ($options{local_port})
	{
		setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
		bind($socket,
			pack_sockaddr_in($options{local_port}, inet_aton('127.0.0.1')))
		  or die "bind: $!\n";
	}
	CORE::connect($socket, $address) or die "connect: $!\n";
	$self->{socket} = $socket;
	return;
}

sub pid { return $_[0]->{pid}; }

# The key with which its session can be cancelled; and the version of the protocol
# to which the server has asked it to go down, if it has.
sub secret     { return $_[0]->{secret}; }
sub negotiated { return $_[0]->{negotiated}; }

# Bytes that have arrived, and have been sent, since the connection was opened.
sub received { return $_[0]->{received}; }
sub sent     { return $_[0]->{sent}; }

# Responses that were read to their ReadyForQuery since then, or since the test
# has said that the session's account begins anew.
sub responded  { return $_[0]->{responses}; }
sub begin_anew { $_[0]->{responses} = 0; return; }

# Sends bytes, all at once as far as the kernel takes them.
sub put
{
	my ($self, @messages) = @_;
	my $bytes = join('', @messages);

	local $SIG{PIPE} = 'IGNORE';
	while (length $bytes)
	{
		my $written = syswrite($self->{socket}, $bytes);
		die "could not send: $!\n" unless defined $written;
		$self->{sent} += $written;
		substr($bytes, 0, $written, '');
	}
	return;
}

# Waits for more bytes; false at the end of the connection.
sub _fill
{
	my ($self, $deadline, $what) = @_;
	my $select = IO::Select->new($self->{socket});
	my $left;

	# a signal ends can_read() as well
	do
	{
		$left = $deadline - clock_gettime(CLOCK_MONOTONIC);
		die "timed out waiting for $what\n" if $left <= 0;
	} until $select->can_read($left);
	my $read =
	  sysread($self->{socket}, $self->{buffer}, 1 << 20,
		length $self->{buffer});
	$self->{received} += $read // 0;
	return $read;
}

sub _deadline
{
	return clock_gettime(CLOCK_MONOTONIC) +
	  $PostgreSQL::Test::Utils::timeout_default;
}

# The next message, as { type, body }, with { error } of errors and notices
# (fields by their code, e.g. M for the message).  undef at the end.
sub read_message
{
	my ($self, $deadline, $what) = @_;

	$deadline //= _deadline();
	for (;;)
	{
		if (length $self->{buffer} >= 5)
		{
			my ($type, $length) = unpack('a N', $self->{buffer});
			if (length $self->{buffer} > $length)
			{
				my $body = substr($self->{buffer}, 5, $length - 4);
				my %m = (type => $type, body => $body);

				substr($self->{buffer}, 0, 1 + $length, '');
				$m{error} = { map { /^(.)(.*)$/s } split /\0/, $body }
				  if $type eq 'E' or $type eq 'N';
				$self->{responses}++ if $type eq 'Z';
				return \%m;
			}
		}
		$self->_fill($deadline, $what // 'a message') or return;
	}
}

# Reads messages up to and including the first one of these types.
sub until
{
	my ($self, $types) = @_;
	my $deadline = _deadline();
	my @messages;

	for (;;)
	{
		my $m = $self->read_message($deadline, "message of type $types");
		die "connection closed while waiting for $types, after: "
		  . join(' ', map { $_->{error}{M} // $_->{type} } @messages) . "\n"
		  unless $m;
		push @messages, $m;
		return @messages if index($types, $m->{type}) >= 0;
	}
}

# Takes about this many bytes from the kernel, if available; true if there were
# any.
sub take
{
	my ($self, $bytes) = @_;
	my $taken = 0;

	while ($taken < $bytes and IO::Select->new($self->{socket})->can_read(0))
	{
		my $read =
		  sysread($self->{socket}, $self->{buffer}, $bytes,
			length $self->{buffer})
		  or last;
		$self->{received} += $read;
		$taken += $read;
	}
	return $taken;
}

# All messages up to the end of the connection, however it ends.
sub until_closed
{
	my ($self) = @_;
	my @messages;

	while (my $m = $self->read_message(undef, 'the end of the connection'))
	{
		push @messages, $m;
	}
	return @messages;
}

# Reads and throws away "count" responses; dies if one has an error.
sub responses
{
	my ($self, $count) = @_;

	for (1 .. $count // 1)
	{
		foreach my $m ($self->until('Z'))
		{
			die "unexpected error: $m->{error}{M}\n" if $m->{type} eq 'E';
		}
	}
	return;
}

# One exchange of the simple protocol; returns the rows as hashes.
sub rows
{
	my ($self, $sql) = @_;
	my (@names, @rows, $error);

	$self->put(query($sql));
	foreach my $m ($self->until('Z'))
	{
		if ($m->{type} eq 'T')
		{
			@names = unpack('n/(Z* x18)', $m->{body});
		}
		elsif ($m->{type} eq 'D')
		{
			my %row;
			@row{@names} = _values($m->{body});
			push @rows, \%row;
		}
		$error //= $m->{error}{M} if $m->{type} eq 'E';
	}
	die "$error\n" if defined $error;
	return @rows;
}

sub _values
{
	my ($body) = @_;
	my $count = unpack('n', $body);
	my $at = 2;
	my @values;

	for (1 .. $count)
	{
		my $length = unpack('N', substr($body, $at, 4));
		$at += 4;
		if ($length == 0xFFFFFFFF)
		{
			push @values, undef;
			next;
		}
		push @values, substr($body, $at, $length);
		$at += $length;
	}
	return @values;
}

# The first column of the first row.
sub value
{
	my ($self, $sql) = @_;
	my @values;

	$self->put(query($sql));
	foreach my $m ($self->until('Z'))
	{
		@values = _values($m->{body}) if $m->{type} eq 'D' and !@values;
		die "$m->{error}{M}\n" if $m->{type} eq 'E';
	}
	return $values[0];
}

# One exchange of the simple protocol for each statement.
sub run
{
	my ($self, @statements) = @_;

	$self->rows($_) foreach @statements;
	return;
}

# The error that a query gives; '' if none.
sub error_of
{
	my ($self, $sql) = @_;

	return '' if eval { $self->rows($sql); 1 };
	chomp(my $error = $@);
	return $error;
}

# Asks the server to cancel what this connection's session is doing.
sub cancel
{
	my ($self) = @_;
	my $other = (ref $self)->silent($self->{node}, tcp => $self->{tcp});

	$other->put(
		pack('N N N a*',
			12 + length $self->{secret}, 80877102,
			$self->{pid}, $self->{secret}));

	# the server closes the connection when it has sent the signal
	$other->until_closed;
	return;
}

# Disconnects properly.
sub finish
{
	my ($self) = @_;

	eval { $self->put(terminate()) };
	close($self->{socket});
	return;
}

# Sends nothing more, but goes on reading.
sub finish_sending
{
	my ($self) = @_;

	shutdown($self->{socket}, SHUT_WR);
	return;
}

# Resets a TCP connection: what has arrived and what is in flight is lost.
sub reset
{
	my ($self) = @_;

	setsockopt($self->{socket}, SOL_SOCKET, SO_LINGER, pack('i i', 1, 0));
	close($self->{socket});
	return;
}

# Closes the socket without Terminate.
sub vanish
{
	my ($self) = @_;

	close($self->{socket});
	return;
}

1;
