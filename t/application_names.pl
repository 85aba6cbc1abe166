
# Copyright (c) 2026, the pgnetlat authors

# Names that change with each request: those of tracers are no names, and others are
# kept apart only up to a number, so that they evict nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

# a database, role and address has room for so many names
my $max_names = 50;

my ($node, $observer) = start_node('names');

sub trace { return sprintf('%08x' x 4, 0xa0000000 + $_[0], 1, 2, $_[0]); }

sub traceparent { return '00-' . trace($_[0]) . '-00f067aa0ba902b7-01'; }

sub set_name { return "SET application_name = '$_[0]'"; }

# How the observer sees a client's session.
sub name_of
{
	my ($client) = @_;

	return $observer->account($client->pid)->{application_name};
}

# The latest complete exchanges of a client, oldest first.
sub recent
{
	my ($client, $count) = @_;

	$client->run('SELECT 0');
	$observer->settled($client);
	my @records =
	  $observer->rows('SELECT * FROM pgnetlat_recent(' . $client->pid . ')');
	return @records[ -$count .. -1 ];
}

sub traces_of
{
	return join ' ', map { $_->{trace_id} // 'none' } @_;
}

# What a session counts must be what statements count.
sub sums_agree
{
	my ($what) = @_;
	my ($sums) = $observer->rows(
		q{SELECT (SELECT sum(statements) FROM pgnetlat_clients
				   WHERE application_name <> 'observer') AS clients,
				 (SELECT sum(calls) FROM pgnetlat_statements) AS statements});

	is($sums->{clients}, $sums->{statements},
		"$what: clients and statements count as many statements");
	return;
}

# Groups that others must not evict, and that nobody uses any more.
my @quiet = map { "quiet $_" } 1 .. 5;
foreach my $name (@quiet)
{
	my $client = PgNetlat::Client->named($node, $name, tcp => 1);

	$client->run('SELECT 1', 'SELECT 2');
	$client->finish;
	$observer->ended($name);
}

sub quiet_are_there
{
	my ($what) = @_;

	is( join(
			' ',
			map { $_->{application_name} } $observer->clients(
				q{application_name LIKE 'quiet%' AND requests = 2
				  ORDER BY application_name})),
		join(' ', @quiet),
		"$what: groups that nobody uses are there");
	is($observer->value('SELECT clients_evicted FROM pgnetlat_info'),
		0, "$what: no group is evicted");
	return;
}

# ---------------------------------------------------------------------------
# A tracer
# ---------------------------------------------------------------------------

my $shop = PgNetlat::Client->named($node, 'shop');
my $traces = 1500;
foreach my $number (1 .. $traces)
{
	$shop->run(set_name(traceparent($number)), 'SELECT 1');
}
$observer->settled($shop);
quiet_are_there('a tracer');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_clients WHERE application_name LIKE '%00-%'}
	),
	0,
	'a traceparent is no group');
is( $observer->client('shop')->{requests},
	2 * $traces,
	'a session stays in its group');
is(name_of($shop), 'shop', 'a session keeps its name');
is( $observer->value(
		'SELECT application_name FROM pg_stat_activity WHERE pid = '
		  . $shop->pid),
	traceparent($traces),
	'pg_stat_activity has the traceparent');
my @statements = $observer->rows(
	'SELECT queryid, calls, query FROM pgnetlat_top_statements ORDER BY query'
);
is( join('; ',
		map  { "$_->{calls} $_->{query}" }
		grep { $_->{query} =~ /SET/ } @statements),
	"$traces SET application_name",
	'SET application_name is one statement');
sums_agree('a tracer');

# the trace joins what it is for, and what set it
my @latest = recent($shop, 2);
is( traces_of(@latest),
	join(' ', (trace($traces)) x 2),
	'exchanges have the trace');
$shop->run(
	set_name(traceparent(1)),
	'SELECT 1',
	'SELECT 2; SELECT 3',
	set_name(traceparent(2)),
	'BEGIN',
	'SELECT 1',
	'COMMIT',
	'RESET application_name',
	'SELECT 1');
is( traces_of(recent($shop, 9)),
	join(' ', (trace(1)) x 3, (trace(2)) x 5, 'none'),
	'exchanges are in the trace that was set last');
is(name_of($shop), 'shop', 'RESET brings back the first name');

# in one exchange with its statement, and undone at the end of a transaction
$shop->run(set_name(traceparent(3)) . '; SELECT 1');
is(traces_of(recent($shop, 1)),
	trace(3), 'an exchange is in the trace that it sets');
$shop->run(
	'RESET application_name',
	'BEGIN', "SET LOCAL application_name = '@{[ traceparent(4) ]}'",
	'SELECT 1', 'COMMIT', 'SELECT 1');
is( traces_of(recent($shop, 5)),
	join(' ', 'none', (trace(4)) x 3, 'none'),
	'a trace of a transaction ends with it');

# the extended protocol, also if the statement is prepared in an exchange of its own
my $pipelined = 0;
foreach my $number (5 .. 104)
{
	my $set = set_name(traceparent($number));

	$shop->put(
		parse('', $set),
		$number % 2 ? sync() : (),
		bind_('', ''),
		execute(''), sync());
	$shop->responses(1 + $number % 2);
}
$shop->run(
	"SELECT set_config('application_name', '@{[ traceparent($_) ]}', false)")
  foreach 105 .. 204;
$shop->run(set_name(traceparent(205)));
is(traces_of(recent($shop, 1)),
	trace(205), 'a trace is set in the extended protocol');
is($observer->value('SELECT count(*) FROM pgnetlat_statements'),
	5, 'SET, SELECT, set_config(), BEGIN and COMMIT are five statements');
sums_agree('the extended protocol');
is(name_of($shop), 'shop', 'the name is still the same');

# not the only part of the name, or not all of it
foreach (
	[ 'api ' . traceparent(301), 'api', trace(301) ],
	[ traceparent(302) . '|web', 'web', trace(302) ],
	[ '_DD_' . traceparent(303), 'web', trace(303) ],
	[ 'an-application/' . traceparent(304), 'an-application', trace(304) ],
	[
		'an-application-with-a-long-name/' . traceparent(305),
		'an-application-with-a-long-name',
		'none'
	],
	[ 'shop', 'shop', 'none' ],
	[ '', '', 'none' ])
{
	my ($application_name, $name, $trace) = @$_;

	$shop->run(set_name($application_name), 'SELECT 1');
	is(traces_of(recent($shop, 1)),
		$trace, "\"$application_name\": the trace");
	is(name_of($shop), $name, "\"$application_name\": the name");
	is($observer->client($name)->{sessions},
		1, "\"$application_name\": the group");
}

# from the beginning
my $nameless = PgNetlat::Client->named($node, traceparent(401));
$nameless->run('SELECT 1', 'SELECT 2');
is( traces_of(recent($nameless, 2)),
	join(' ', (trace(401)) x 2),
	'a session begins with a trace');
is(name_of($nameless), '', 'a session that begins with a trace has no name');
$nameless->finish;

# behind a pooler, whose suffix goes when a trace comes
my $pooled = PgNetlat::Client->named($node, 'pooled - 10.0.0.7:51034');
$pooled->run(set_name(traceparent(402)), 'SELECT 1');
$observer->settled($pooled);
my $account = $observer->account($pooled->pid);
is( "$account->{application_name} $account->{client_addr} $account->{client_port}",
	'pooled 10.0.0.7 51034',
	"a session keeps its pooler's client");
$pooled->finish;

# a holder of locks is known by its name
$shop->run(
	set_name('shop'), 'CREATE TABLE held ()',
	'BEGIN', set_name(traceparent(403)),
	'LOCK held');
my $blocked = PgNetlat::Client->named($node, 'blocked');
$blocked->put(query('SELECT * FROM held'));
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT max(blocked_time) FROM pgnetlat_blockers WHERE application_name = 'shop'}
			) // 0 > 0;
		}),
	'a holder has its name');
$shop->run('COMMIT');
$blocked->responses;
$blocked->finish;
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_blockers WHERE application_name LIKE '%00-%'}
	),
	0,
	'no holder has the name of a trace');
$shop->finish;
$observer->ended('blocked');

# ---------------------------------------------------------------------------
# Other names
# ---------------------------------------------------------------------------

$observer->run('SELECT pgnetlat_reset()');
foreach my $name (@quiet)
{
	my $client = PgNetlat::Client->named($node, $name, tcp => 1);

	$client->run('SELECT 1', 'SELECT 2');
	$client->finish;
	$observer->ended($name);
}

# Groups with the tests' database, role and address.
my $kin =
  q{datname = 'postgres' AND client_addr IS NULL AND usesysid IS NOT NULL};

sub others { return $observer->client('(other names)'); }

my $stable = PgNetlat::Client->named($node, 'stable');
my $tests = PgNetlat::Client->named($node, 'tests');
my $names = 2000;
foreach my $number (1 .. $names)
{
	$tests->run(set_name("test $number"), 'SELECT 1');
	$stable->run('SELECT 1') if $number % 100 == 0;
	if ($number % 500 == 0)
	{
		# of all that was counted, and over a window, nothing is missing
		$observer->settled($tests);
		$observer->settled($stable);
		foreach my $relation ('pgnetlat_clients',
			q{pgnetlat_clients_last('15 min')})
		{
			is( $observer->value(
					"SELECT sum(requests) FROM $relation
					  WHERE application_name NOT LIKE 'quiet%' AND application_name <> 'observer'"
				),
				$number * 2 + $number / 100,
				"$number names: $relation has all requests");
		}
		cmp_ok(
			scalar($observer->clients($kin)),
			'<=',
			$max_names + 1,
			"$number names: there are not too many rows");
		is($observer->client("test $number")->{sessions},
			1, "$number names: the latest one has a row of its own");
	}
}
quiet_are_there('2,000 names');
sums_agree('2,000 names');
is( $observer->client('stable')->{requests},
	$names / 100,
	'a name that is used all the time keeps its row');
cmp_ok(
	others()->{requests},
	'>',
	1.9 * $names,
	'names without a row of their own are in one that says so');
is(others()->{sessions}, 0, 'no session is in that row');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_top_clients WHERE application = '(other names)'}
	),
	1,
	'pgnetlat_top_clients shows that row');
is( $observer->value(
		q{SELECT count(*) FROM pgnetlat_metrics_client WHERE application_name = '(other names)'}
	),
	0,
	'for exporters, they are among the others');
is( $observer->value(
		'SELECT sum(requests_total) FROM pgnetlat_metrics_client'),
	$observer->value(
		q{SELECT sum(requests) FROM pgnetlat_clients WHERE application_name <> 'observer'}
	),
	'exporters have all requests');

# what comes later and stays has a row, too
my $late = PgNetlat::Client->named($node, 'late');
$late->run('SELECT 1');
foreach my $number (1 .. 200)
{
	$tests->run(set_name("later test $number"));
}
$observer->settled($late);
is($observer->client('late')->{requests},
	1, 'a name that comes late has a row');
$_->finish foreach $late, $tests, $stable;
$observer->ended('late');

# a clean restart keeps it all
my $what =
  q{SELECT string_agg(concat_ws(' ', application_name, client_addr, requests), E'\n'
							   ORDER BY application_name, client_addr)
			   FROM pgnetlat_clients WHERE application_name <> 'observer'};
my $before = $observer->poll(
	sub {
		$observer->value('SELECT count(*) FROM pgnetlat_sessions') == 1
		  && $observer->value($what);
	});
$observer->finish;
$node->restart;

# it must not be one of the names below
$observer = PgNetlat::Observer->connect($node, tcp => 1);
is($observer->value($what), $before, 'a restart keeps all names');

# ---------------------------------------------------------------------------
# More names at a time than there is room for
# ---------------------------------------------------------------------------

$observer->run('SELECT pgnetlat_reset()');
my @living =
  map { PgNetlat::Client->named($node, "living $_") } 1 .. $max_names + 20;
$_->run('SELECT 1') foreach @living;
$observer->settled($_) foreach @living;
cmp_ok(
	scalar(
		$observer->clients("$kin AND application_name <> '(other names)'")),
	'<=',
	$max_names,
	'there are only so many names');
is( $observer->value(
		q{SELECT sum(sessions) FROM pgnetlat_clients WHERE application_name <> 'observer'}
	),
	scalar(@living),
	'each session is in a group');
cmp_ok(others()->{sessions},
	'>=', 20, 'those without a row are in one together');
my ($roomless) =
  grep { !$observer->client("living $_") } 1 .. @living;
$living[ $roomless - 1 ]->run('SELECT 1');
$_->finish foreach grep { $_ != $living[ $roomless - 1 ] } @living;
ok( $observer->poll(
		sub {
			($observer->client("living $roomless") // {})->{sessions};
		}),
	'a session has a row when there is room');
is( $observer->value(
		q{SELECT sum(requests) FROM pgnetlat_clients WHERE application_name <> 'observer'}
	),
	@living + 1,
	'no request is lost');
is($observer->value('SELECT clients_evicted FROM pgnetlat_info'),
	0, 'nothing is evicted');

no_violations($observer);
$node->stop;
done_testing();
