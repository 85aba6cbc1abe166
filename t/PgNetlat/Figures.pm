
# Copyright (c) 2026, the pgnetlat authors

=pod

=head1 NAME

PgNetlat::Figures - the rules of pgnetlat_diagnose(), over figures that a test makes up

=cut

package PgNetlat::Figures;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT =
  qw(use_figures add group session statement fill diagnose found expect healthy near);

my $observer;

# What the function reads, and the table that stands in for it: functions (with
# their arguments) and views.
my %figures = (
	c => 'pgnetlat_clients_last(interval)',
	s => 'pgnetlat_sessions_last(interval)',
	st => 'pgnetlat_statements_last(interval)',
	p => 'pgnetlat_pools_last(interval)',
	b => 'pgnetlat_blockers_last(interval)',
	h => 'pgnetlat_histogram()',
	i => 'pgnetlat_info()',
	failed => 'pgnetlat_failed_connections()',
	standbys => 'pg_stat_replication',
	w => 'pgnetlat_waits()',
	activity => 'pg_stat_activity',
	databases => 'pg_stat_database');

# Makes the tables, and in their schema the function from its own text: its body is
# bound to what comes first in search_path, and that is what stands in.
sub use_figures
{
	($observer) = @_;
	my ($function) =
	  slurp_file("$FindBin::RealBin/../pgnetlat--1.0.sql") =~
	  /^(CREATE FUNCTION pgnetlat_findings\(.*?^END;)$/ms
	  or die 'no function';

	$observer->run(
		'CREATE SCHEMA figures',
		'CREATE TABLE figures.recents AS SELECT 0 AS session, * FROM pgnetlat_recent(0)'
	);
	foreach my $name (sort keys %figures)
	{
		my $call = $figures{$name} =~ s/\(interval\)/()/r;

		$observer->run(
			"CREATE TABLE figures.$name AS SELECT * FROM $call LIMIT 0");
		my @numbers = map { $_->{attname} } $observer->rows(
			"SELECT attname FROM pg_attribute WHERE attrelid = 'figures.$name'::regclass AND attnum > 0
				AND atttypid IN ('float8'::regtype, 'int8'::regtype) AND attname NOT IN ('rtt', 'queryid', 'query_id')"
		);
		$observer->run("ALTER TABLE figures.$name "
			  . join(', ', map { "ALTER $_ SET DEFAULT 0" } @numbers))
		  if $name ne 'activity' && @numbers;
		$observer->run(
			$figures{$name} =~ /\(/
			? "CREATE FUNCTION figures.$figures{$name} RETURNS SETOF figures.$name LANGUAGE sql STABLE "
			  . "BEGIN ATOMIC SELECT * FROM figures.$name; END"
			: "CREATE VIEW figures.$figures{$name} AS SELECT * FROM figures.$name"
		);
	}

	# whoever asks is no finding: its process ID may be that of a session made up
	$observer->run(
		'CREATE FUNCTION figures.pgnetlat_recent(pid integer) RETURNS SETOF figures.recents LANGUAGE sql '
		  . 'BEGIN ATOMIC SELECT * FROM figures.recents WHERE session = pid; END',
		'CREATE FUNCTION figures.pg_backend_pid() RETURNS integer LANGUAGE sql RETURN 0',
		'SET search_path = figures, public, pg_catalog',
		$function,
		'RESET search_path');
	return;
}

# Rows of a table, each a hash of columns.
sub add
{
	my ($table, %row) = @_;
	my @columns = sort keys %row;

	$observer->run(
		sprintf 'INSERT INTO figures.%s (%s) VALUES (%s)',
		$table,
		join(', ', @columns),
		join(', ', map { defined $_ ? $_ : 'NULL' } @row{@columns}));
	return;
}

sub literal { return "'" . ($_[0] =~ s/'/''/gr) . "'"; }

# A minute of a client group, called "app" if it has no other name.
sub complete
{
	my (%row) = @_;

	$row{$_} //= 0
	  foreach
	  qw(exec_time send_time recv_time network_time client_time idle_time);
	$row{total_time} //=
	  $row{exec_time} +
	  $row{send_time} +
	  $row{recv_time} +
	  $row{network_time} +
	  $row{client_time} +
	  $row{idle_time};
	$row{statements}   //= $row{requests} // 0;
	$row{transactions} //= $row{requests} // 0;
	$row{round_trips}  //= $row{requests} // 0;
	return (
		datid => 5,
		usesysid => 10,
		usename => "'postgres'",
		window_time => 60000,
		%row,
		application_name => literal($row{application_name} // 'app'));
}

sub group { add('c', sessions => 1, complete(@_)); return; }

sub session
{
	my (%row) = complete(@_);

	$row{state} = literal($row{state} // 'waiting');
	my $age = delete $row{age} // 0;
	my $query = delete $row{query};
	my %seen = (
		pid => $row{pid},
		map    { $_ => delete $row{$_} }
		  grep { exists $row{$_} } qw(query_id wait_event));
	add('s', state_change => "clock_timestamp() - interval '$age s'", %row);
	add('activity', %seen,
		datid => 5,
		usesysid => 10,
		query => literal($query // ''));
	return;
}

sub statement
{
	add('st',
		dbid => 5,
		userid => 10,
		queryid => 42,
		window_time => 60000,
		@_);
	return;
}

# So many rows with random numbers, of which many are 0, and some enormous.
sub fill
{
	my ($table, $rows) = @_;
	my %type = map { $_->{attname} => $_->{type} } $observer->rows(
		"SELECT attname, atttypid::regtype AS type FROM pg_attribute
		  WHERE attrelid = 'figures.$table'::regclass AND attnum > 0");
	my %known = (
		n => 'i',
		pid => '100 + i',
		datid => '5 + i % 2',
		dbid => '5',
		usesysid => '10',
		userid => '10',
		queryid => 'i',
		application_name => q('app' || i % 40),
		state =>
		  q((ARRAY['executing', 'sending', 'waiting', 'waiting in transaction'])[1 + i % 4]),
		metric => q((ARRAY['wait', 'connect'])[1 + i % 2]),
		le => q('{0.005,0.01,0.025,0.05,0.1,0.25,0.5,1.0,+Inf}'::text[]),
		bucket => q('{0,0,0,1,9,9,9,9,9}'::bigint[]),
		state_change => q(now() - random() * interval '1 h'),
		unanswered_since =>
		  q(CASE WHEN random() < 0.1 THEN now() - random() * interval '1 h' END),
		blocked_by =>
		  'CASE WHEN random() < 0.2 THEN (100 * random())::int END');
	my $random =
	  '(ARRAY[0, 0, 0, 1, 10, 50, 1000, 30000, 1e6, 1e12])[1 + 10 * random()]';
	my @columns =
	  grep {
			 $known{$_}
		  or $type{$_} =~ /^(double precision|bigint|integer)$/
	  }
	  sort keys %type;

	$observer->run(
		sprintf
		  'INSERT INTO figures.%s (%s) SELECT %s FROM generate_series(1, %d) i',
		$table,
		join(', ', @columns),
		join(', ',
			map { $known{$_} // "least($random, 2e9)::$type{$_}" } @columns),
		$rows);
	return;
}

# The findings, the most expensive first, as the current role sees them; "false": without texts.
sub diagnose
{
	my $with_texts = shift // 'true';

	return $observer->rows(
		"SELECT * FROM figures.pgnetlat_findings('1 min', $with_texts)");
}

# The same.  Empties the tables.
sub found
{
	my @found = diagnose();

	$observer->run('TRUNCATE ' . join ', ',
		map { "figures.$_" } keys %figures, 'recents');
	return @found;
}

sub expect
{
	my ($verdict, $evidence, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @found = found();

	is($found[0]{verdict}, $verdict, "$name: the first finding is $verdict")
	  or diag(explain(\@found));
	like($found[0]{evidence}, $evidence, "$name: the evidence is right")
	  if defined $evidence;
	return @found;
}

sub healthy { return expect('no problem found', undef, @_); }

sub near
{
	my ($got, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	cmp_ok(abs(($got // -1) - $expected), '<', 0.01 * $expected + 1e-9, $name)
	  or diag($got);
	return;
}

1;
