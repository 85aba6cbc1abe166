
# Copyright (c) 2026, the pgnetlat authors

# A sampler that gets no memory: it says that it fails, without filling the server's log,
# and goes on when it can.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

plan(skip_all => 'there is no prlimit')
  unless eval { run_log([ 'prlimit', '--version' ]) };

# for so many connections, the list of locks is too large for what the sampler has
my ($node, $observer) =
  start_node('worker_fails', conf => "max_connections = 3000\n");
my $sampler = $observer->poll(
	sub { $observer->value('SELECT sampler_pid FROM pgnetlat_info') });
my ($holder, $waiter) =
  map { PgNetlat::Client->named($node, $_) } 'holder', 'waiter';

sub limit_memory
{
	my ($bytes) = @_;

	return run_log([ 'prlimit', "--pid=$sampler", "--as=$bytes:" ]);
}

sub failed
{
	return $observer->value(
		'SELECT count(*) FROM pgnetlat_info WHERE sampler_last_error > sampler_last_tick'
	);
}

sub errors
{
	return $observer->value('SELECT sampler_errors FROM pgnetlat_info');
}

is( $observer->value('SELECT sampler_last_error IS NULL FROM pgnetlat_info'),
	't', 'a sampler without errors says so');
$holder->run('SELECT pg_advisory_lock(1)');
my ($size) = slurp_file("/proc/$sampler/status") =~ /^VmSize:\s*(\d+) kB/m;
my $offset = log_size($node);
ok(limit_memory($size * 1024), 'the sampler gets no more memory');
$waiter->put(query('SELECT pg_advisory_lock(1)'));
ok($observer->poll(sub { failed() }), 'a failed sample is seen');
ok($observer->poll(sub { errors() >= 3 }), 'it fails again and again');
my $reports = () = server_log($node, $offset) =~ /ERROR:  out of memory/g;
is($reports, 1, 'the log has one of its errors in a minute');

limit_memory('unlimited');
ok( $observer->poll(
		sub {
			my ($row) = $observer->blockers(q{application_name = 'holder'});
			return $row && $row->{blocked_sessions} == 1;
		}),
	'it goes on where it can');
ok($observer->poll(sub { !failed() }), 'and is well');
is($observer->value('SELECT sampler_pid FROM pgnetlat_info'),
	$sampler, 'it is the same one');

$holder->finish;
$waiter->responses;
$waiter->finish;
no_violations($observer);
$node->stop;
done_testing();
