
# Copyright (c) 2026, the pgnetlat authors

# A backend that a debugger has stopped while it writes its status, where core's
# change count is odd: nobody waits for it for ever, neither the worker, nor who reads,
# nor who connects, nor who resets it.  (PostgreSQL's own pg_stat_activity does.)

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# What is bounded takes a tenth of a second for each copy.
use constant PATIENCE_S => 60;

my $library = backend_library()
  or plan(skip_all => 'there is no compiler, or no server headers');
my ($node, $observer) = start_node('stopped_in_status');
$observer->run(
	"CREATE FUNCTION stop_in_status() RETURNS void LANGUAGE c AS '$library'",
	'CREATE ROLE other LOGIN');

my $holder = PgNetlat::Client->connect($node, application_name => 'stopped');
my $victim = PgNetlat::Client->connect($node, application_name => 'victim');
my $reader = PgNetlat::Client->connect($node, application_name => 'reader');
my $pid = $holder->pid;

END { kill('CONT', $pid) if $pid; }

# it blocks somebody, so that the worker wants to know who it is
$holder->run('BEGIN', 'SELECT pg_advisory_xact_lock(1)');
$victim->run('SELECT 1');
$holder->put(query('SELECT stop_in_status()'));

# nothing if it has ended, which may happen between two looks
sub state_of_process
{
	my ($process) = @_;

	open(my $file, '<', "/proc/$process/stat") or return '';
	my $line = <$file> // '';
	close($file);
	return $line =~ /^.*\) (\S)/s ? $1 : '';
}
my $stopped = $observer->poll(sub { state_of_process($pid) eq 'T' });
ok($stopped, 'a backend is stopped in its write section');
$victim->put(query('SELECT pg_advisory_xact_lock(1)'));

# Runs a statement of the reader, which must come back in time, with a result or not.
sub comes_back
{
	my ($name, $sql) = @_;
	my $begun = now();

	local $SIG{ALRM} = sub { die "no answer\n" };
	alarm PATIENCE_S;
	my @messages = eval {
		$reader->put(query($sql));
		$reader->until('Z');
	};
	my $error = $@;
	alarm 0;
	is($error, '', "$name: it returns")
	  or BAIL_OUT("$name: no answer in " . PATIENCE_S . ' s');
	note(sprintf '%s: %.0f ms', $name, now() - $begun);
	return map { $_->{error}{C} // () } @messages;
}

sub ticks
{
	return $reader->value('SELECT sampler_ticks FROM pgnetlat_info');
}

my $before = ticks();
foreach my $sql (
	'SELECT * FROM pgnetlat_sessions()',
	'SELECT * FROM pgnetlat_sessions_last()',
	'SELECT * FROM pgnetlat_clients()',
	'SELECT * FROM pgnetlat_clients_last()',
	'SELECT * FROM pgnetlat_statements()',
	'SELECT * FROM pgnetlat_pools()',
	'SELECT * FROM pgnetlat_blockers()',
	'SELECT * FROM pgnetlat_history()',
	"SELECT * FROM pgnetlat_recent($pid)",
	"SELECT pgnetlat_reset_session($pid)",
	'SELECT pgnetlat_reset()')
{
	is_deeply([ comes_back($sql, $sql) ], [], "$sql: it returns no error");
}
ok($observer->poll(sub { ticks() > $before + 20 }), 'the sampler ticks on');

# it does not spin: a stopped session costs it no more than others do
my $cpu = sub {
	return $reader->value('SELECT sampler_cpu_time FROM pgnetlat_info');
};
my $used = $cpu->();
my $since = now();
pause(2000);
cmp_ok(
	$cpu->() - $used,
	'<',
	0.5 * (now() - $since),
	'the sampler does not spin');

# a reader obeys its timeout
my @codes = comes_back('statement_timeout',
	q{SET statement_timeout = '300ms'; SELECT count(*) FROM generate_series(1, 20000000), pgnetlat_clients()}
);
is_deeply(\@codes, ['57014'], 'statement_timeout cancels a reader');
comes_back('no timeout', 'SET statement_timeout = 0');

# sessions come and go, more than one for each lock that they share
foreach my $round (1 .. 3)
{
	my @new;

	local $SIG{ALRM} = sub { die "no answer\n" };
	alarm PATIENCE_S;
	my $done = eval {
		push @new,
		  PgNetlat::Client->connect($node, application_name => "new $_")
		  foreach 1 .. 40;
		$_->run('SELECT 1') foreach @new;
		1;
	};
	alarm 0;
	ok($done, 'new sessions start') or BAIL_OUT($@);
	kill 'TERM', $_->pid foreach @new;
	my $gone = $observer->poll(
		sub {
			!grep {
				-d '/proc/' . $_->pid && state_of_process($_->pid) ne 'Z'
			} @new;
		});
	ok($gone, 'new sessions obey SIGTERM');
	$_->vanish foreach @new;
}

kill 'CONT', $pid;
$holder->responses;
$holder->run('COMMIT');
$victim->responses;
$pid = undef;

no_violations($observer);
$node->stop;
done_testing();
