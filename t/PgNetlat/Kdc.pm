
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

PgNetlat::Kdc - a private key distribution center of Kerberos

=head1 DESCRIPTION

Encryption by GSSAPI needs tickets, and tickets need somebody who issues them.
This one has a realm of its own, listens on 127.0.0.1 at a free port, and keeps
everything in a temporary directory; it runs as whoever runs the test.  Whatever
the machine itself has of Kerberos is neither read nor changed: the environment of
this process, and of all that it starts from then on, is set to the private files.

MIT's programs (Debian's krb5-kdc, krb5-admin-server and krb5-user).

=cut

package PgNetlat::Kdc;

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket      qw(:all);
use Time::HiRes qw(usleep);

my $REALM = 'PGNETLAT.TEST';

# Debian has some of them where only root looks.
my @PLACES = (
	split(/:/, $ENV{PATH}), '/usr/sbin',
	'/usr/lib/mit/sbin', '/usr/lib/mit/bin',
	'/usr/local/sbin');
my %PACKAGE = (
	krb5kdc => 'krb5-kdc',
	kdb5_util => 'krb5-kdc',
	'kadmin.local' => 'krb5-admin-server',
	kinit => 'krb5-user');

sub _program
{
	my ($name) = @_;

	return (grep { -x } map { "$_/$name" } @PLACES)[0];
}

# Why there cannot be a KDC; nothing if there can.
sub missing
{
	foreach my $name (sort keys %PACKAGE)
	{
		return "$name is not installed (Debian: $PACKAGE{$name})"
		  unless _program($name);
	}
	return;
}

# The name by which clients must address a server, since tickets are issued to
# names.  They are given its address separately.
sub server_name { return 'server.pgnetlat.test'; }

# Starts one, for a server with this name.
sub start
{
	my ($class) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir;
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $self = bless { directory => $directory, port => $port }, $class;

	$self->_write_configuration;
	$ENV{KRB5_CONFIG} = "$directory/krb5.conf";
	$ENV{KRB5_KDC_PROFILE} = "$directory/kdc.conf";
	$ENV{KRB5CCNAME} = "FILE:$directory/tickets";
	$ENV{KRB5RCACHEDIR} = $directory;
	$self->_run('kdb5_util', 'create', '-s', '-r', $REALM, '-P', 'master');
	$self->_admin('addprinc -randkey postgres/' . server_name());
	$self->_admin("ktadd -k $directory/keytab postgres/" . server_name());

	my $output = '';
	$self->{process} = IPC::Run::start([ _program('krb5kdc'), '-n' ],
		'<', \undef, '>', \$output, '2>&1');
	$self->_await_listener(\$output);
	return $self;
}

# The file with the server's key: krb_server_keyfile.
sub keytab { return "FILE:$_[0]->{directory}/keytab"; }

# A user with a password.
sub add_user
{
	my ($self, $name, $password) = @_;

	$self->_admin("addprinc -pw $password $name");
	return;
}

# From now on, all clients have that user's ticket.
sub log_in
{
	my ($self, $name, $password) = @_;

	$self->_run_with("$password\n", 'kinit', "$name\@$REALM");
	return;
}

sub stop
{
	my ($self) = @_;

	$self->{process}->kill_kill;
	return;
}

sub _write_configuration
{
	my ($self) = @_;
	my ($directory, $port) = @$self{qw(directory port)};

	# only that KDC is asked, and no name server
	append_to_file("$directory/krb5.conf", <<"EOC");
[libdefaults]
default_realm = $REALM
dns_canonicalize_hostname = false
dns_lookup_kdc = false
dns_lookup_realm = false
rdns = false
udp_preference_limit = 1

[realms]
$REALM = {
	kdc = 127.0.0.1:$port
}

[domain_realm]
.pgnetlat.test = $REALM

[logging]
default = FILE:$directory/krb5.log
kdc = FILE:$directory/kdc.log
EOC
	append_to_file("$directory/kdc.conf", <<"EOC");
[kdcdefaults]
kdc_listen = ""
kdc_tcp_listen = 127.0.0.1:$port

[realms]
$REALM = {
	database_name = $directory/principal
	key_stash_file = $directory/stash
	acl_file = $directory/acl
}
EOC
	return;
}

sub _run { my ($self, @command) = @_; return $self->_run_with('', @command); }

sub _run_with
{
	my ($self, $input, $name, @arguments) = @_;
	my $output = '';

	IPC::Run::run([ _program($name), @arguments ],
		'<', \$input, '>', \$output, '2>&1')
	  or die "$name @arguments failed: $output\n";
	return $output;
}

# kadmin.local has succeeded whatever it says.
sub _admin
{
	my ($self, $query) = @_;
	my $output = $self->_run('kadmin.local', '-r', $REALM, '-q', $query);

	die "$query: $output\n" unless $output =~ /created|added to keytab/;
	return;
}

sub _await_listener
{
	my ($self, $output) = @_;
	my $attempts = $PostgreSQL::Test::Utils::timeout_default * 100;

	for (1 .. $attempts)
	{
		socket(my $socket, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
		return
		  if connect($socket,
			pack_sockaddr_in($self->{port}, inet_aton('127.0.0.1')));
		$self->{process}->pump_nb;
		die "the KDC has ended: $$output\n"
		  unless $self->{process}->pumpable;
		usleep(10_000);
	}
	die "the KDC does not listen: $$output\n";
}

1;
