
# Copyright (c) 2026, the pgnetlat authors

# Random clients, valid and not, against a server: it must not crash or hang, every
# account adds up, and what valid clients know has been counted to the unit.
#
#	FUZZ_CONNECTIONS=100000		how many there are (2,000)
#	FUZZ_SEED=7					what they are (1)
#	FUZZ_ONLY=4711				only this one of them

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../../t";

use Conversation
  qw(any_name any_packet chance damaged messages pick valid_requests);
use IO::Select;
use POSIX ();
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Socket      qw(MSG_DONTWAIT);
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);
use Test::More;

my $WORKERS = 8;
my $wanted = $ENV{FUZZ_CONNECTIONS} // 2000;
my $seed = $ENV{FUZZ_SEED} // 1;
my $only = $ENV{FUZZ_ONLY};

# programs have their own names
delete $ENV{PGAPPNAME};

my ($node, $observer) = start_node(
	'connections',
	init => { allows_streaming => 1 },
	conf =>
	  "max_connections = 300\npgnetlat.idle_threshold = '20ms'\npgnetlat.max_clients = 60\n"
);
$observer->run('CREATE DATABASE valid');
foreach my $dbname ('postgres', 'valid')
{
	my $setup = PgNetlat::Client->connect(
		$node,
		dbname => $dbname,
		application_name => 'setup');

	$setup->run(
		'CREATE TABLE sink (a text)',
		'CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$',
		'CREATE TRIGGER swallow BEFORE INSERT ON sink FOR EACH ROW EXECUTE FUNCTION swallow()'
	);
	$setup->finish;
}
$observer->ended('setup', 2);
$observer->run('SELECT pgnetlat_reset()');
my $user = getpwuid($<);

# ---------------------------------------------------------------------------
# One connection
# ---------------------------------------------------------------------------

# Sends bytes while it reads what comes, as the server may take no more until then.
# False if the connection has ended.
sub send_all
{
	my ($client, $bytes) = @_;
	my $socket = $client->{socket};
	my $deadline = now() + $PostgreSQL::Test::Utils::timeout_default * 1000;
	local $SIG{PIPE} = 'IGNORE';

	while (length $bytes)
	{
		my ($readable, $writable) = IO::Select->select(
			IO::Select->new($socket),
			IO::Select->new($socket),
			undef, 1);

		return 0 if @{ $readable // [] } and !$client->take(1 << 16);
		die "hangs: takes no more\n" if now() > $deadline;
		next unless @{ $writable // [] };
		my $sent = send($socket, $bytes, MSG_DONTWAIT);
		return 0 unless defined $sent or $!{EAGAIN};
		substr($bytes, 0, $sent // 0, '');
	}
	return 1;
}

# Reads to the end of the connection, which must come.
sub read_to_end
{
	my ($client) = @_;
	my $deadline = now() + $PostgreSQL::Test::Utils::timeout_default * 1000;

	$client->{buffer} = '';
	for (;;)
	{
		die "hangs: does not end\n" if now() > $deadline;
		next unless IO::Select->new($client->{socket})->can_read(1);
		$client->take(1 << 16) or return;
		$client->{buffer} = '';
	}
}

# Sends it in pieces, with or without listening in between.
sub send_in_pieces
{
	my ($client, $bytes) = @_;
	my $listens = chance(0.5);

	for (my $pieces = int rand 4; $pieces > 0 and length $bytes; $pieces--)
	{
		send_all($client, substr($bytes, 0, rand length $bytes, ''))
		  or return;
		next unless $listens;
		$client->take(1 << 16)
		  if IO::Select->new($client->{socket})->can_read(rand 0.003);
	}
	send_all($client, $bytes);
	return;
}

# Ends a connection in one of the ways in which it can end.
sub end_somehow
{
	my ($client) = @_;
	my $end = int rand 6;

	if ($end <= 1)
	{
		send_all($client, terminate()) if $end == 0;
		$client->finish_sending;
		read_to_end($client);
		$client->vanish;
	}
	elsif ($end == 2)
	{
		$client->reset;
	}
	elsif ($end == 3)
	{
		# in the middle of what the server sends
		$client->take(1 + rand 100);
		$client->vanish;
	}
	elsif ($end == 4)
	{
		send_all($client, damaged(query('SELECT 1')));
		$client->vanish;
	}
	else
	{
		$client->vanish;
	}
	return;
}

# Anything but a session that is known to work.
sub any_connection
{
	my ($note) = @_;
	my %options = (tcp => int rand 2);
	my $client;

	$options{receive_buffer} = 1024 if chance(0.1);
	if (chance(0.3))
	{
		$client = PgNetlat::Client->silent($node, %options);
		send_in_pieces($client, any_packet($user));
	}
	else
	{
		$options{application_name} = any_name();
		$options{protocol} = 0x30000 + pick(0, 2, 9) if chance(0.1);
		$options{replication} = 'database' if chance(0.05);

		# walsenders may be too many
		if (!eval { $client = PgNetlat::Client->connect($node, %options); })
		{
			die $@ unless $@ =~ /connection refused/;
			return;
		}
		$note->($client->pid);
		if (chance(0.01))
		{
			send_all($client, query('SELECT pg_sleep(0.3)'));
			$client->cancel;
		}
		send_in_pieces($client, join('', messages()));
	}
	end_somehow($client);
	return;
}

# A client that does everything right, and knows what it has done.  All of them have a
# database of their own, whose rows have that, whatever group is evicted.
sub valid_connection
{
	my ($sum, $note) = @_;
	my $from = now();
	my $client = PgNetlat::Client->connect(
		$node,
		tcp => int rand 2,
		dbname => 'valid',
		application_name => 'valid ' . int rand 200);
	my $ready = now();
	my @requests = valid_requests();
	my $received = $client->received;
	my ($done, $statements) = (0, 0);

	$note->($client->pid);
	while (@requests)
	{
		my @now = splice(@requests, 0, chance(0.5) ? 1 : 1 + rand @requests);

		send_all($client, join('', @now)) or die "a valid client was left\n";
		foreach (@now)
		{
			$statements +=
			  grep { $_->{type} =~ /^[CV]$/ } $client->until('Z');
			$done++;
		}
	}
	my $end = now();
	send_all($client, terminate());
	read_to_end($client);
	$client->vanish;
	$sum->{connections}++;
	$sum->{requests}   += $done;
	$sum->{statements} += $statements;
	$sum->{bytes_sent} += $client->received - $received;
	$sum->{least}      += $end - $ready;
	$sum->{most}       += now() - $from;
	return;
}

# ---------------------------------------------------------------------------
# All connections
# ---------------------------------------------------------------------------

# Which connection a worker has, and which process serves it: "NUMBER PID" each.
sub worker_log { return "${PostgreSQL::Test::Utils::tmp_check}/fuzz_$_[0]"; }

sub run_worker
{
	my ($worker) = @_;
	my %sum = map { $_ => 0 }
	  qw(connections requests statements bytes_sent least most);

	open(my $log, '>', worker_log($worker)) or die "$!\n";
	$log->autoflush(1);
	for (my $number = $worker; $number < $wanted; $number += $WORKERS)
	{
		next if defined $only and $number != $only;
		srand(($seed * 1_000_003 + $number * 2_654_435_761) % 2**32);
		print $log "$number\n";
		my $note = sub { print $log "$number $_[0]\n"; };
		if (chance(0.25))
		{
			valid_connection(\%sum, $note);
		}
		else
		{
			any_connection($note);
		}
	}
	print $log join(' ', 'sums', %sum), "\n";
	close($log);
	return;
}

sub start_worker
{
	my ($worker) = @_;
	my $pid = fork // die "fork: $!\n";

	return $pid if $pid;

	# what the tests have begun is not for this process to end
	eval { run_worker($worker); 1 } and POSIX::_exit(0);
	open(my $log, '>>', worker_log($worker)) or POSIX::_exit(2);
	print $log "failed: $@";
	close($log);
	POSIX::_exit(1);
}

# ---------------------------------------------------------------------------
# What must hold
# ---------------------------------------------------------------------------

my @wrong;
my @COUNTS =
  qw(requests statements transactions pipelined round_trips bytes_sent);

# Sessions that stay are asked for more all the time; their group is their sum.
my @held = map {
	PgNetlat::Client->connect(
		$node,
		tcp => $_ % 2,
		application_name => 'held')
} 1 .. 4;

sub held_sessions
{
	my ($of) = @_;
	my ($row) =
	  $observer->rows('SELECT '
		  . join(', ', map { "sum($_) AS $_" } @COUNTS, 'total_time')
		  . " FROM $of WHERE application_name = 'held'");
	return $row;
}

sub compare_held
{
	my $before = held_sessions('pgnetlat_sessions');
	my $group = held_sessions('pgnetlat_clients');
	my $after = held_sessions('pgnetlat_sessions');

	foreach (@COUNTS, 'total_time')
	{
		push @wrong,
		  "$_ of a group is $group->{$_}, of its sessions $before->{$_} to $after->{$_}"
		  if $group->{$_} < $before->{$_} - 1e-3
		  or $group->{$_} > $after->{$_} + 1e-3;
	}
	return;
}

# One of them says something, perhaps half of a request, the rest of which comes later.
sub ask_held
{
	my $client = pick(@held);
	my ($now, $later) = @{
		pick(
			(map { [$_] } grep { !/application_name/ } valid_requests()),
			[ query('BEGIN') ],
			[ query('COMMIT') ],
			[ extended('SELECT 1'), sync() ],
			[ extended('SELECT 1/0') . flush(), sync() ],
			[ substr(query('SELECT 1'), 0, 9), substr(query('SELECT 1'), 9) ],
			[
				query('COPY sink FROM STDIN') . copy_data("row\n"),
				copy_done()
			])
	};

	($now, $later) = ($client->{later}) if defined $client->{later};
	$client->{later} = $later;
	send_all($client, $now)
	  or push @wrong, 'a session that should stay has ended';
	$client->{buffer} = '';
	return;
}

# All that is counted never falls, whatever is evicted.
my $all = {};

sub compare_all
{
	my ($now) = $observer->rows(
		'SELECT '
		  . join(', ',
			map { "sum($_) AS $_" } @COUNTS, 'total_time',
			'connections', 'ended_sessions')
		  . ' FROM pgnetlat_clients');
	foreach (grep { $all->{$_} } keys %$now)
	{
		push @wrong, "$_ of all groups fell from $all->{$_} to $now->{$_}"
		  if $now->{$_} < $all->{$_} - 1e-3;
	}
	$all = $now;
	return;
}

sub look
{
	ask_held();
	$observer->accounts;
	$observer->clients;
	$observer->walsenders;
	compare_held();
	compare_all();
	push @wrong, 'not a number'
	  if $observer->value(
		q{SELECT count(*) FROM pgnetlat_clients c WHERE c::text ~* 'nan|infinity'}
	  );
	return;
}

# ---------------------------------------------------------------------------

my $started = now();
my $log_began = log_size($node);
my $postmaster = slurp_file($node->data_dir . '/postmaster.pid');
my $sampler = $observer->value('SELECT sampler_pid FROM pgnetlat_info');
my %worker = map { start_worker($_) => $_ } 0 .. $WORKERS - 1;

while (%worker and !@wrong)
{
	eval { look(); 1 } or push @wrong, "observer: $@";
	while ((my $pid = waitpid(-1, POSIX::WNOHANG())) > 0)
	{
		push @wrong, "worker $worker{$pid} ended with $?" if $?;
		delete $worker{$pid};
	}
	usleep(50_000);
}
my $seconds = (now() - $started) / 1000;
kill 'TERM', keys %worker;
waitpid $_, 0 foreach keys %worker;

is(join("\n", @wrong), '', 'nothing goes wrong while they connect');

# No crash.
my $log = server_log($node, $log_began);
is( join("\n",
		$log =~
		  /^.*(?:PANIC|TRAP:|terminated by signal|exited with exit code [^01]|background worker "pgnetlat|runtime error|Sanitizer).*$/mg
	),
	'',
	'no process crashes');
is(slurp_file($node->data_dir . '/postmaster.pid'),
	$postmaster, 'the server is the same');

SKIP:
{
	skip 'the server does not answer', 6
	  unless eval { $observer->value('SELECT 1') };

	is($observer->value('SELECT sampler_pid FROM pgnetlat_info'),
		$sampler, 'the sampler is the same');
	is($observer->value('SELECT sampler_errors FROM pgnetlat_info'),
		0, 'the sampler has no errors');

	# what is known of valid clients includes what evicted groups have had
	cmp_ok($observer->value('SELECT clients_evicted FROM pgnetlat_info'),
		'>', 0, 'groups are evicted')
	  unless $wanted < 1000 or defined $only;

	# No hang: all sessions end once their clients have left.
	$_->vanish foreach @held;
	ok( $observer->poll(
			sub {
				$observer->value(
					q{SELECT count(*) = 0 FROM pg_stat_activity
					   WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()}
				) eq 't';
			}),
		'all sessions end');
	is( $observer->value(
			q{SELECT count(*) FROM pgnetlat_sessions WHERE pid <> pg_backend_pid()}
		),
		0,
		'none of them is left in pgnetlat_sessions');
	eval { look_at_end(); 1 } or fail("the end: $@") unless @wrong;
}

# What valid clients know.
sub look_at_end
{
	my %known;

	foreach (0 .. $WORKERS - 1)
	{
		my %sum = (
			slurp_file(worker_log($_)) =~ /^sums (.*)$/m
			? split(/ /, $1)
			: ());
		$known{$_} += $sum{$_} foreach keys %sum;
	}
	my ($counted) = $observer->rows(
		q{SELECT sum(ended_sessions) AS ended_sessions, sum(requests) AS requests,
				sum(statements) AS statements, sum(bytes_sent) AS bytes_sent,
				coalesce(sum(total_time), 0) AS total_time
			FROM pgnetlat_clients WHERE datname = 'valid'});

	note(join(', ', map { "$_ $known{$_}" } sort keys %known));
	is( $counted->{ $_ eq 'connections' ? 'ended_sessions' : $_ } // 0,
		$known{$_} // 0,
		"valid clients: $_"
	) foreach qw(connections requests statements bytes_sent);
	my $time = $counted->{total_time};
	ok( $time >= ($known{least} // 0) && $time <= ($known{most} // 0) + 1e-3,
		'valid clients: total_time is what they know of'
	) or diag("$known{least} to $known{most}, not $time");
	compare_all();
	is(join("\n", @wrong), '', 'nothing falls in the end');
	return;
}

no_violations($observer);
note(
	sprintf(
		'%d connections in %.0f s, %.0f a second; %s sessions, %s requests',
		$wanted,
		$seconds,
		$wanted / $seconds,
		$all->{ended_sessions} // '?',
		$all->{requests}       // '?'));

# Where to look: what each worker was at.
if (!Test::More->builder->is_passing)
{
	diag("seed $seed; FUZZ_ONLY=NUMBER repeats one; the latest are");
	foreach (0 .. $WORKERS - 1)
	{
		my @lines = split /\n/, slurp_file(worker_log($_));
		diag(
			join(
				' | ', "worker $_", @lines > 3 ? @lines[ -3 .. -1 ] : @lines)
		);
	}
}
$node->stop;
done_testing();
