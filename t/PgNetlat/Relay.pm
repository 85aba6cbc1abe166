
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

PgNetlat::Relay - stands between clients and a server, and counts

=head1 DESCRIPTION

What passes between a client and the server may be encrypted, but not who speaks
when: a turn is over when the server speaks after its client has.  That is all that
a relay has to know, so that its counts are true whatever the two say to each
other.  Its clients must not speak before they have heard the whole answer, as
psql and libpq do not.

A process of its own, which serves one connection at a time and ends with this one.

=cut

package PgNetlat::Relay;

use strict;
use warnings;

use IO::Select;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils ();
use Socket                  qw(:all);
use Time::HiRes             qw(usleep);

# Starts a relay to a server; "delay" is the number of milliseconds by which
# each turn of the client is delayed.
sub start
{
	my ($class, $node, %options) = @_;

	socket(my $listener, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
	bind($listener, pack_sockaddr_in(0, inet_aton('127.0.0.1')))
	  or die "bind: $!\n";
	listen($listener, 5) or die "listen: $!\n";
	my ($port) = unpack_sockaddr_in(getsockname($listener));
	pipe(my $reports, my $report) or die "pipe: $!\n";
	my $parent = $$;
	my $pid = fork // die "fork: $!\n";

	if ($pid == 0)
	{
		eval {
			close $reports;
			_serve($listener, $report, $node->port, $options{delay} // 0)
			  while _comes($listener, $parent);
		};
		print STDERR "relay: $@" if $@;
		POSIX::_exit(0);
	}
	close $listener;
	close $report;
	return bless { port => $port, pid => $pid, reports => $reports }, $class;
}

sub port { return $_[0]->{port}; }

# The turns, and the bytes in both directions, of the next connection that has
# ended.
sub ended
{
	my ($self) = @_;

	die "timed out waiting for a connection to end\n"
	  unless IO::Select->new($self->{reports})
	  ->can_read($PostgreSQL::Test::Utils::timeout_default);
	my $line = readline($self->{reports}) // die "the relay has ended\n";
	my ($turns, $to_server, $to_client) = split ' ', $line;
	return {
		turns => $turns,
		to_server => $to_server,
		to_client => $to_client
	};
}

sub stop
{
	my ($self) = @_;

	kill 'KILL', $self->{pid};
	waitpid $self->{pid}, 0;
	return;
}

# In its own process: waits for a client, unless the test has ended.
sub _comes
{
	my ($listener, $parent) = @_;

	until (IO::Select->new($listener)->can_read(1))
	{
		return 0 if getppid() != $parent;
	}
	return 1;
}

sub _serve
{
	my ($listener, $report, $port, $delay) = @_;
	my ($turns, $client_spoke) = (0, 0);
	my %bytes;

	accept(my $client, $listener)               or die "accept: $!\n";
	socket(my $server, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
	connect($server, pack_sockaddr_in($port, inet_aton('127.0.0.1')))
	  or die "connect: $!\n";
	setsockopt($_, IPPROTO_TCP, TCP_NODELAY, 1) foreach $client, $server;

	my $both = IO::Select->new($client, $server);

  CONVERSATION:
	for (;;)
	{
		foreach my $from ($both->can_read)
		{
			my $is_client = $from == $client;

			sysread($from, my $data, 65536) or last CONVERSATION;
			$bytes{$is_client} += length $data;
			if ($is_client)
			{
				usleep($delay * 1000) if $delay and !$client_spoke;
				$client_spoke = 1;
			}
			else
			{
				$turns++ if $client_spoke;
				$client_spoke = 0;
			}
			_send($is_client ? $server : $client, $data) or last CONVERSATION;
		}
	}
	close $_ foreach $client, $server;
	syswrite(
		$report, sprintf "%d %d %d\n",
		$turns,
		$bytes{1}  // 0,
		$bytes{''} // 0);
	return;
}

sub _send
{
	my ($to, $data) = @_;

	local $SIG{PIPE} = 'IGNORE';
	while (length $data)
	{
		my $written = syswrite($to, $data) or return 0;
		substr($data, 0, $written, '');
	}
	return 1;
}

1;
