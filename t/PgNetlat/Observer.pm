
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

PgNetlat::Observer - looks at the accounts of other sessions, and checks them

=head1 DESCRIPTION

A superuser's connection that reads pgnetlat_sessions.  Whatever it reads, it
checks: the parts must sum to the whole, and the whole must grow exactly as fast
as the clock.  No sum over a group may ever fall; a session's column may step back
by what was in progress and turned out otherwise, see $STEP_BACK.  What it finds
wrong is collected for violations(), which every test file ends with.

=cut

package PgNetlat::Observer;

use strict;
use warnings;

use parent -norequire, 'PgNetlat::Client';
use Exporter       ();
use File::Basename qw(dirname);
use List::Util     qw(max);
use PgNetlat::Client;
use PostgreSQL::Test::Utils ();
use Time::HiRes             qw(clock_gettime usleep CLOCK_MONOTONIC);

# The columns of a group of sql/account.columns.
sub columns
{
	my ($group) = @_;

	my $lists = PostgreSQL::Test::Utils::slurp_file(
		dirname(__FILE__) . '/../../sql/account.columns');
	my ($rows) = $lists =~ /^\[$group\]\n((?:\w+\t.*\n)+)/m
	  or die "sql/account.columns has no group $group";
	return $rows =~ /^(\w+)\t/mg;
}

our @PARTS = (columns('parts'), columns('idle'), 'pending_time');

# those of exec_time
our @EXEC_PARTS = columns('executing');

# Columns that are sums: they can be added over sessions and subtracted over
# time.
our @SUMS = (
	(grep { $_ ne 'pending_time' } @PARTS), @EXEC_PARTS, qw(run_queue_time
	  run_queue_wait_time total_time retransmits bytes_sent bytes_received packets_sent
	  packets_received pooler_requests),
	columns('beside'), columns('counts'));

# Columns that never fall: the sums, and others that only rise.
our @GROWING = (@SUMS);

# what sessions have beside
our @SESSION_GROWING = qw(blocking_time);

# Milliseconds by which a time of a session may step back, besides a round trip:
# a tick of the sampler; more if a busy machine delays it.  Counts and the total
# never step back.  exec_unsampled_time is a remainder without such a bound.
my $STEP_BACK = 50;

# Milliseconds: the error of adding and printing floating point numbers.
my $ROUNDING = 1e-6;

# Milliseconds by which the test's clock and the account's may seem to differ,
# since moments are truncated to microseconds.
my $CLOCK_ERROR = 0.1;

# The same between the wall clock and the monotonic one, over some seconds.
my $WALL_CLOCK_ERROR = 5;

# Of pgnetlat_blockers: the parts; and what never falls.
our @BLOCKER_PARTS = qw(blocked_by_exec_time blocked_by_send_time
  blocked_by_recv_time blocked_by_network_time blocked_by_client_time
  blocked_by_other_time);
our @BLOCKER_GROWING =
  (@BLOCKER_PARTS, qw(blocked_time blocked_time_max blocked_sessions_max));

# Of pgnetlat_walsenders, likewise.
our @WALSENDER_PARTS =
  qw(network_limited_time receiver_limited_time buffer_limited_time);
our @WALSENDER_GROWING = (
	(grep { $_ ne 'network_limited_time' } @WALSENDER_PARTS),
	qw(busy_time total_time bytes_acked retransmits));

# What was wrong, as every observer of this process has seen it: a test may connect
# several, one after the other.
my @violations;

# Its own statements are not recorded, so that tests can count all others.
sub connect
{
	my ($class, $node, %options) = @_;

	return $class->SUPER::connect(
		$node,
		application_name => 'observer',
		options => '-c pgnetlat.track_statements=off',
		%options);
}

sub _now { return clock_gettime(CLOCK_MONOTONIC) * 1000; }

sub _complain
{
	my ($self, $row, $what) = @_;
	my $who = join(' ',
		map { "$_=" . ($row->{$_} // 'NULL') }
		grep { exists $row->{$_} } qw(pid state application_name));

	push @violations, "$what ($who)";
	return;
}

# Checks a row of pgnetlat_sessions or pgnetlat_clients in itself.
sub _check_row
{
	my ($self, $row) = @_;
	my $sum = 0;

	$sum += $row->{$_} foreach @PARTS;
	$self->_complain($row, "parts sum to $sum, not $row->{total_time}")
	  if abs($sum - $row->{total_time}) > $ROUNDING + 1e-9 * $sum;

	foreach my $column (@GROWING, @SESSION_GROWING, 'pending_time')
	{
		$self->_complain($row, "$column is $row->{$column}")
		  if defined $row->{$column} and $row->{$column} < 0;
	}

	# and those of COPY FROM STDIN
	$self->_complain($row, 'round_trips is less than requests - pipelined')
	  if $row->{round_trips} < $row->{requests} - $row->{pipelined};
	$self->_complain($row, 'pooler_requests exceeds requests')
	  if $row->{pooler_requests} > $row->{requests};
	$self->_complain($row, 'in_xact_wait_time exceeds the waits')
	  if $row->{in_xact_wait_time} >
	  $row->{network_time} + $row->{client_time} + $ROUNDING;
	foreach (qw(send_blocked_time send_client_time))
	{
		$self->_complain($row, "$_ exceeds send_time")
		  if $row->{$_} > $row->{send_time} + $ROUNDING;
	}

	my $executed = 0;

	$executed += $row->{$_} foreach @EXEC_PARTS;
	$self->_complain($row,
		"exec_time is $row->{exec_time}, its parts $executed")
	  if abs($executed - $row->{exec_time}) > $ROUNDING + 1e-9 * $executed;
	if (defined $row->{run_queue_wait_time})
	{
		$self->_complain($row, "run_queue_wait_time exceeds $_")
		  foreach
		  grep { $row->{run_queue_wait_time} > $row->{$_} + $ROUNDING }
		  qw(run_queue_time client_time);
	}

	if (defined $row->{server_share})
	{
		my $shares =
		  $row->{server_share} + $row->{network_share} + $row->{client_share};
		$self->_complain($row, "shares sum to $shares")
		  if abs($shares - 1) > 1e-9;
	}
	return;
}

# Checks a row against an earlier reading of it.
sub _check_growth
{
	my ($self, $old, $new, @columns) = @_;

	foreach my $column (@columns ? @columns : @GROWING)
	{
		next unless defined $old->{$column} and defined $new->{$column};
		$self->_complain($new,
			"$column fell from $old->{$column} to $new->{$column}")
		  if $new->{$column} < $old->{$column} - 1e-9;
	}
	return;
}

# The same for a session, whose times may step back.
sub _check_session_growth
{
	my ($self, $old, $new) = @_;

	foreach my $column (grep { $_ ne 'exec_unsampled_time' } @GROWING,
		@SESSION_GROWING)
	{
		next unless defined $old->{$column} and defined $new->{$column};
		my $allowed =
		  $column =~ /_time$/ && $column ne 'total_time'
		  ? max($STEP_BACK, $old->{since_visit}) + ($new->{rtt} // 0)
		  : 1e-9;

		$self->_complain($new,
			"$column fell from $old->{$column} to $new->{$column}")
		  if $new->{$column} < $old->{$column} - $allowed;
	}
	return;
}

# The total must have grown by the time between the two readings.
sub _check_clock
{
	my ($self, $old, $new) = @_;
	my $grown = $new->{total_time} - $old->{total_time};

	return if $self->{clock_unchecked};
	$self->_complain(
		$new,
		sprintf(
			'total_time grew by %.3f ms in at least %.3f and at most %.3f ms',
			$grown,
			$new->{read_from} - $old->{read_to},
			$new->{read_to} - $old->{read_from}))
	  if $grown < $new->{read_from} - $old->{read_to} - $CLOCK_ERROR
	  or $grown > $new->{read_to} - $old->{read_from} + $CLOCK_ERROR;
	return;
}

# While sessions are switched off, their time does not grow.
sub expect_clock { $_[0]->{clock_unchecked} = !$_[1]; return; }

# Milliseconds since the sampler visited the session, at most: it has done so at
# the tick before the latest, as it may not have come to it in that.
sub _since_visit
{
	my ($self, $row) = @_;
	my $ticks = $self->{ticks} //= [ ($row->{last_tick} // 0) x 2 ];

	@$ticks = ($ticks->[1], $row->{last_tick})
	  if defined $row->{last_tick} and $row->{last_tick} != $ticks->[1];
	return $row->{read_at} - $ticks->[0];
}

# The accounts of sessions by process ID, checked; all of them, or those that
# meet a condition.  Where sessions load the library, those that have not done so yet
# have no account.
sub accounts
{
	my ($self, $condition) = @_;
	my $read_from = _now();
	my @rows = $self->rows(
		'SELECT *, (SELECT extract(epoch FROM sampler_last_tick) * 1000
					  FROM pgnetlat_info) AS last_tick,
				(SELECT loaded_by FROM pgnetlat_info) AS loaded_by,
				extract(epoch FROM clock_timestamp()) * 1000 AS read_at
		   FROM pgnetlat_sessions'
		  . (defined $condition ? " WHERE $condition" : ''));
	my $read_to = _now();

	$self->_complain($_, 'no account')
	  foreach
	  grep { !defined $_->{total_time} && $_->{loaded_by} eq 'server' } @rows;
	@rows = grep { defined $_->{total_time} } @rows;
	foreach my $row (@rows)
	{
		# a reset begins a new account
		my $key = "$row->{pid} $row->{backend_start} $row->{stats_since}";
		my $old = $self->{seen}{$key};

		@$row{qw(read_from read_to)} = ($read_from, $read_to);
		$row->{since_visit} = $self->_since_visit($row);
		$self->_check_row($row);
		if ($old)
		{
			$self->_check_session_growth($old, $row);
			$self->_check_clock($old, $row);
		}
		$self->{seen}{$key} = $row;
	}
	return { map { $_->{pid} => $_ } @rows };
}

# The account of one session; undef if there is none.
sub account
{
	my ($self, $pid) = @_;

	return $self->accounts("pid = $pid")->{$pid};
}

# One session's account over a window, checked; undef if there is none.
sub window
{
	my ($self, $duration, $pid) = @_;
	my $read_from = _now();
	my ($row) = $self->rows(
		"SELECT *, extract(epoch FROM interval '$duration') * 1000 AS asked,
				extract(epoch FROM clock_timestamp() - stats_since) * 1000 AS length
		   FROM pgnetlat_sessions_last('$duration') WHERE pid = $pid");
	my $reading = _now() - $read_from;

	return unless $row;
	$self->_check_row($row);
	$self->_complain($row,
		"window_time is $row->{window_time}, not $row->{total_time}")
	  if $row->{window_time} != $row->{total_time};

	# the whole must be what has passed since it began
	$self->_complain(
		$row,
		sprintf(
			'window of %.3f ms, which began %.3f to %.3f ms ago',
			$row->{window_time}, $row->{length} - $reading,
			$row->{length}))
	  if $row->{window_time} < $row->{length} - $reading - $WALL_CLOCK_ERROR
	  or $row->{window_time} > $row->{length} + $WALL_CLOCK_ERROR;

	# shorter than asked for only if it is all there is
	if ($row->{window_time} < $row->{asked})
	{
		my $account = $self->account($pid);

		$self->_complain($row,
			"window since $row->{stats_since} is too short")
		  if $account && $account->{stats_since} ne $row->{stats_since};
	}
	return $row;
}

# The rows of pgnetlat_clients, checked.
sub clients
{
	my ($self, $condition) = @_;
	my @rows = $self->rows('SELECT * FROM pgnetlat_clients'
		  . (defined $condition ? " WHERE $condition" : ''));

	foreach my $row (@rows)
	{
		my $key = join(' ',
			map { $row->{$_} // 'NULL' }
			  qw(datid usesysid application_name client_addr stats_since));
		my $old = $self->{seen_clients}{$key};

		$self->_check_row($row);
		$self->_check_growth($old, $row) if $old;
		$self->{seen_clients}{$key} = $row;
	}
	return @rows;
}

# The rows of pgnetlat_blockers, checked.
sub blockers
{
	my ($self, $condition) = @_;
	my @rows = $self->rows('SELECT * FROM pgnetlat_blockers'
		  . (defined $condition ? " WHERE $condition" : ''));

	foreach my $row (@rows)
	{
		my $key = join(' ',
			map { $row->{$_} // 'NULL' }
			  qw(datid usesysid application_name client_addr backend_type queryid stats_since)
		);
		my $old = $self->{seen_blockers}{$key};
		my $sum = 0;

		$sum += $row->{$_} foreach @BLOCKER_PARTS;
		$self->_complain($row, "parts sum to $sum, not $row->{blocked_time}")
		  if abs($sum - $row->{blocked_time}) > $ROUNDING + 1e-9 * $sum;
		foreach
		  my $column (@BLOCKER_PARTS, @BLOCKER_GROWING, 'blocked_sessions')
		{
			$self->_complain($row, "$column is $row->{$column}")
			  if $row->{$column} < 0;
		}
		$self->_complain($row, 'blocked_time_max exceeds blocked_time')
		  if $row->{blocked_time_max} > $row->{blocked_time} + $ROUNDING;
		$self->_complain($row,
			'blocked_sessions exceeds blocked_sessions_max')
		  if $row->{blocked_sessions} > $row->{blocked_sessions_max};
		$self->_check_growth($old, $row, @BLOCKER_GROWING) if $old;
		$self->{seen_blockers}{$key} = $row;
	}
	return @rows;
}

# One row of pgnetlat_walsenders against itself, and the same seen earlier.
sub _check_walsender
{
	my ($self, $row, $old) = @_;

	return unless defined $row->{busy_time};
	my $sum = 0;
	$sum += $row->{$_} foreach @WALSENDER_PARTS;
	$self->_complain($row, "parts sum to $sum, not $row->{busy_time}")
	  if abs($sum - $row->{busy_time}) > $ROUNDING + 1e-9 * $sum;
	$self->_complain($row, 'the sender and busy_time do not sum to the whole')
	  if abs($row->{sender_time} + $row->{busy_time} - $row->{total_time}) >
	  $ROUNDING + 1e-9 * $row->{total_time};
	foreach my $column (@WALSENDER_PARTS, @WALSENDER_GROWING, 'sender_time')
	{
		$self->_complain($row, "$column is $row->{$column}")
		  if $row->{$column} < 0;
	}
	$self->_check_growth($old, $row, @WALSENDER_GROWING)
	  if $old and defined $old->{busy_time};
	return;
}

# The rows of pgnetlat_walsenders, checked.
sub walsenders
{
	my ($self, $condition) = @_;
	my $read_from = _now();
	my @rows = $self->rows('SELECT * FROM pgnetlat_walsenders'
		  . (defined $condition ? " WHERE $condition" : ''));
	my $read_to = _now();

	foreach my $row (@rows)
	{
		my $key = "$row->{pid} $row->{backend_start}";
		my $old = $self->{seen_walsenders}{$key};

		@$row{qw(read_from read_to)} = ($read_from, $read_to);
		$self->_check_walsender($row, $old);
		$self->{seen_walsenders}{$key} = $row;
	}
	return @rows;
}

# Waits until a walsender's row meets a condition (in $_) and returns it, or
# undef.
sub await_walsender
{
	my ($self, $which, $condition) = @_;

	return $self->poll(
		sub {
			local ($_) = $self->walsenders($which);
			return defined $_ && (!$condition || $condition->()) ? $_ : undef;
		});
}

# The same over the last so much time.
sub clients_window
{
	my ($self, $duration, $condition) = @_;
	my @rows = $self->rows("SELECT * FROM pgnetlat_clients_last('$duration')"
		  . (defined $condition ? " WHERE $condition" : ''));

	foreach my $row (@rows)
	{
		$self->_check_row($row);
		$self->_complain($row, "window_time is $row->{window_time}")
		  if $row->{window_time} < 0;
	}
	return @rows;
}

# The sum over all groups of one application.
sub client
{
	my ($self, $application) = @_;
	my %sum;

	foreach my $row ($self->clients("application_name = '$application'"))
	{
		$sum{$_} += $row->{$_} // 0
		  foreach @SUMS, qw(pending_time sessions ended_sessions);
	}
	return %sum ? \%sum : undef;
}

# All findings, checked, as this or another connection sees them.
sub findings
{
	my ($self, $connection) = @_;
	my @rows =
	  ($connection // $self)->rows('SELECT * FROM pgnetlat_diagnose()');
	my %rank = (outage => 1, loss => 2, note => 3, none => 4);
	my $last;

	foreach my $row (@rows)
	{
		my $rank = $rank{ $row->{severity} // 'none' };

		$self->_complain($row,
			"worse than what comes before: $row->{evidence}")
		  if defined $last
		  and ($rank < $last->{rank}
			or $rank == $last->{rank}
			and $row->{lost_sessions} > $last->{lost_sessions});
		$last = { rank => $rank, lost_sessions => $row->{lost_sessions} };
		$self->_complain($row, 'no severity')
		  if ($row->{severity} // '') !~ /^(outage|loss|note)$/
		  and $row->{verdict} ne 'no problem found';
		$self->_complain($row, 'no evidence, or no figures in it')
		  if $row->{evidence} !~ /\d/;
		$self->_complain($row, "nothing is lost: $row->{verdict}")
		  if ($row->{lost_sessions} == 0) != ($row->{verdict} =~
			  /^(no problem found|not visible|too many connections|connections fail|pool exhausted)$/
		  )
		  && $row->{verdict} ne 'hidden path'
		  or $row->{lost_sessions} < 0;
		$self->_complain($row, 'no advice')
		  if !defined $row->{advice}
		  and $row->{verdict} ne 'no problem found';
		$self->_complain($row, "saves $row->{saving_sessions}")
		  if defined $row->{saving_sessions}
		  and ($row->{saving_sessions} < 0
			or $row->{saving_sessions} > $row->{lost_sessions} * (1 + 1e-9));
		$self->_complain($row, "a share of $row->{saving_share}")
		  if defined $row->{saving_share}
		  and ($row->{saving_share} < 0 or $row->{saving_share} > 1);
	}
	return @rows;
}

# The most expensive finding.  Findings about the machine, which others use,
# too, and about this connection, which may have to wait for it, are left out.
sub first_finding
{
	my ($self) = @_;
	my ($row) = grep {
		$_->{verdict} ne 'starved'
		  && ($_->{application_name} // '') ne 'observer'
	} $self->findings;

	return $row // { verdict => 'nothing', evidence => '' };
}

# The OID of a function, for function_call().
sub oid
{
	my ($self, $signature) = @_;

	return $self->value("SELECT '$signature'::regprocedure::oid");
}

# Calls a function until it returns true; undef if it never does in time.
sub poll
{
	my ($self, $function) = @_;
	my $deadline = _now() + $PostgreSQL::Test::Utils::timeout_default * 1000;

	for (;;)
	{
		my $result = $function->();
		return $result if $result;
		return if _now() > $deadline;
		usleep(10_000);
	}
}

# Waits until a session's account meets a condition (in $_) and returns it, or
# undef.
sub await
{
	my ($self, $pid, $condition) = @_;

	return $self->poll(
		sub {
			local $_ = $self->account($pid);
			return defined $_ && $condition->() ? $_ : undef;
		});
}

# Waits until a client's session has counted all requests to which the client
# has read the response, and waits for the next one; returns its account.  The
# client may have its response a moment before the account has it.
#
# "requests" is the number of requests if that is not what the client has read:
# if a response ends at a Flush, or is not read.  Then a process ID is enough.
sub settled
{
	my ($self, $client, $requests) = @_;
	my $pid = ref $client ? $client->pid : $client;

	$requests //= $client->responded;
	my $account = $self->await(
		$pid,
		sub {
			$_->{requests} >= $requests
			  and $_->{state} =~ /^(waiting|waiting in transaction|idle)$/;
		});

	return $account if $account;
	$account = $self->account($pid);
	Test::More::diag(
		"session $pid has not settled: "
		  . join(', ',
			map { "$_=" . ($account->{$_} // 'NULL') } sort keys %$account));
	return $account;
}

# Waits until an application has had this many sessions and has none left.
sub ended
{
	my ($self, $application, $sessions) = @_;

	return $self->poll(
		sub {
			my $sum = $self->client($application);
			return
				 $sum
			  && $sum->{ended_sessions} >= ($sessions // 1)
			  && !$self->value(
				"SELECT count(*) FROM pgnetlat_sessions
				 WHERE application_name = '$application'")
			  ? $sum
			  : undef;
		});
}

# What was wrong in the readings so far, of all observers, as text; '' if nothing.
sub violations
{
	my @all = @violations;
	my $count = @all;

	splice(@all, 20);
	push @all, "... $count in all" if $count > 20;
	return join("\n", @all);
}

1;
