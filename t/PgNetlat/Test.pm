
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

PgNetlat::Test - what the tests have in common

=cut

package PgNetlat::Test;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use PgNetlat::Client;
use PgNetlat::Observer;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);

our @EXPORT = (
	@PgNetlat::Client::EXPORT,
	qw(at_least at_most_beside backend_library configure_tls delta expect_verdict log_size new_node no_tls no_violations now pause server_log start_node start_standby waited)
);

# How the library is loaded: by the server when it starts, or (PGNETLAT_LOAD=session)
# by each session.
our $by_sessions = ($ENV{PGNETLAT_LOAD} // '') eq 'session';
our $load =
  $by_sessions ? 'session_preload_libraries' : 'shared_preload_libraries';

# A server that has the library or whose sessions load it, not started.  "conf" is added to its
# settings, "init" is passed to init().
sub new_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $options{init} // {} });
	$node->append_conf('postgresql.conf', <<EOC);
$load = 'pgnetlat'
listen_addresses = '127.0.0.1'
max_connections = 100
log_statement = none
compute_query_id = on
autovacuum = off
EOC
	$node->append_conf('postgresql.conf', $options{conf}) if $options{conf};
	return $node;
}

# The same, started, with the extension and an Observer.
sub start_node
{
	my $node = new_node(@_);

	$node->start;
	my $observer = PgNetlat::Observer->connect($node);
	$observer->run('CREATE EXTENSION pgnetlat');
	return ($node, $observer);
}

# A standby of a server that allows streaming, started and caught up.
sub start_standby
{
	my ($name, $primary) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->start;
	$primary->wait_for_catchup($standby);
	return $standby;
}

# Why a server cannot use TLS; nothing if it can.
sub no_tls
{
	my ($node) = @_;

	return 'server is built without OpenSSL'
	  unless $node->config_data('--configure') =~ /--with-(ssl=)?openssl/
	  or check_pg_config('#define USE_OPENSSL 1');
	return 'there is no openssl command'
	  unless eval { run_log([ 'openssl', 'version' ]) };
	return;
}

# Gives a server a certificate; it offers TLS when it is started, or reads its
# settings again.
sub configure_tls
{
	my ($node) = @_;
	my $key = $node->data_dir . '/server.key';

	system_or_bail(
		'openssl', 'req',
		'-x509', '-newkey',
		'rsa:2048', '-nodes',
		'-days', '2',
		'-subj', '/CN=localhost',
		'-keyout', $key,
		'-out', $node->data_dir . '/server.crt');
	chmod 0600, $key;
	$node->append_conf('postgresql.conf', 'ssl = on');
	return;
}

# Builds backend.c, a library of functions for a server; nothing if that is impossible.
sub backend_library
{
	my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
	my $library = "${PostgreSQL::Test::Utils::tmp_check}/backend_$$.so";
	my $includes = qx{$pg_config --includedir-server 2>&1};

	chomp $includes;
	return
	  if
	  system('cc', '-O2', '-fPIC', '-shared', "-I$includes", '-o', $library,
		"$FindBin::RealBin/PgNetlat/backend.c") != 0;
	return $library;
}

# Milliseconds of the monotonic clock.
sub now { return clock_gettime(CLOCK_MONOTONIC) * 1000; }

# Does nothing for at least this many milliseconds; returns how long it took.
sub pause
{
	my ($milliseconds) = @_;
	my $start = now();

	while ((my $left = $start + $milliseconds - now()) > 0)
	{
		usleep($left * 1000);
	}
	return now() - $start;
}

# What an account has gained.
sub delta
{
	my ($old, $new) = @_;

	return {
		map    { $_ => $new->{$_} - $old->{$_} }
		  grep { defined $old->{$_} and defined $new->{$_} }
		  @PgNetlat::Observer::SUMS,
		'pending_time'
	};
}

# The waits of an account, in milliseconds.
sub waited
{
	my ($account) = @_;

	return $account->{network_time} + $account->{client_time} +
	  $account->{idle_time};
}

# Was at least this time booked where it belongs?  Doing nothing for a known
# time takes that long even on the slowest machine.  A fifth is allowed for a
# server that is preempted between the event and reading the clock.
sub at_least
{
	my ($milliseconds, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return cmp_ok($milliseconds, '>=', $expected * 0.8, $name);
}

# Was the known time booked elsewhere?  Then the part in question is at most the
# rest of the total, however slow the machine is.  What was pending before is in
# the parts, and in the time before.
sub at_most_beside
{
	my ($part, $milliseconds, $gain, $name) = @_;
	my $whole = $gain->{total_time} - $gain->{pending_time};
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return cmp_ok($part, '<=', $whole - $milliseconds * 0.8, $name);
}

sub no_violations
{
	my ($observer) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is($observer->violations, '',
		'parts add up, time passes as on the clock, and no sum falls');
}

# Waits until a verdict comes first and meets a condition (on its row, in $_);
# returns the row.
sub expect_verdict
{
	my ($observer, $verdict, $what, $condition) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $row;

	ok( $observer->poll(
			sub {
				$row = $observer->first_finding;
				local $_ = $row;
				$row->{verdict} eq $verdict
				  && (!$condition || $condition->());
			}),
		"$what: the first finding is $verdict"
	) or diag(explain([ $observer->findings ]));
	note("$row->{subject_kind} $row->{subject}: $row->{evidence}");
	return $row;
}

sub log_size { return -s $_[0]->logfile; }

# The server's log, from an offset on.
sub server_log
{
	my ($node, $offset) = @_;

	return substr(slurp_file($node->logfile), $offset // 0);
}

1;
