
# Copyright (c) 2026, the pgnetlat authors

# pgnetlat_now: sessions that are stuck come first, it says what blocks them,
# and no line is too long for a terminal.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use Encode qw(decode encode);
use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $width = 120;
my $node = new_node('now',
	conf =>
	  "max_prepared_transactions = 1\ntrack_activity_query_size = 4096");
$node->start;
$node->safe_psql('postgres',
	q{CREATE DATABASE utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0});
$node->safe_psql('postgres',
	q{CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0}
);

my $observer = PgNetlat::Observer->connect($node, dbname => 'utf8');
my $wide_role =
  encode('UTF-8', "\e[31m\x{202e}" . "\x{65e5}\x{672c}\x{8a9e}" x 5);
$observer->run(
	'CREATE EXTENSION pgnetlat',
	'CREATE TABLE t AS SELECT i FROM generate_series(1, 3) i',
	'CREATE ROLE plain LOGIN',
	'CREATE ROLE other LOGIN',
	"CREATE ROLE \"$wide_role\" LOGIN");

sub client { return PgNetlat::Client->named($node, @_); }

# The rows, checked, in their order; and by process ID.
sub rows_of
{
	my ($connection) = @_;
	my @rows = $connection->rows('SELECT * FROM pgnetlat_now');

	foreach my $row (@rows)
	{
		next unless defined $row->{bar};
		$observer->_complain($row, "odd bar: $row->{bar}")
		  if $row->{bar} !~ m{^#*!*\+*=*[.]*$} || length $row->{bar} != 8;
	}
	return @rows;
}

sub row_of
{
	my ($pid) = @_;
	my ($row) = grep { $_->{pid} == $pid } rows_of($observer);

	return $row;
}

# ---------------------------------------------------------------------------
# Which sessions are shown, in which order
# ---------------------------------------------------------------------------

my $idle = client('idle', dbname => 'utf8');
my $sleeper = client('sleeper', dbname => 'utf8', tcp => 1);
my $holder = client('billing', dbname => 'utf8', tcp => 1);
my $victim = client('', dbname => 'utf8', user => 'postgres');
my $queued = client('queued', dbname => 'utf8');
$idle->run('SELECT 1');
$sleeper->put(query('SELECT pg_sleep(600)'));
ok($observer->await($sleeper->pid, sub { $_->{state} eq 'executing' }),
	'a session executes');
$holder->run('BEGIN', 'UPDATE t SET i = 0');

# the client may have its answer a moment before its wait begins
$observer->await($holder->pid,
	sub { $_->{state} eq 'waiting in transaction' });
$victim->put(query("DELETE\n   \tFROM t"));
ok( $observer->poll(
		sub {
			$observer->value(
				'SELECT cardinality(pg_blocking_pids(' . $victim->pid . '))');
		}),
	'another one waits for a lock');
$queued->put(query('DELETE FROM t'));
ok( $observer->poll(
		sub {
			my @rows = rows_of($observer);

				 @rows == 4
			  && $rows[0]{pid} == $holder->pid
			  && $rows[1]{pid} == $victim->pid
			  && $rows[2]{pid} == $queued->pid
			  && $rows[3]{pid} == $sleeper->pid;
		}),
	'sessions come in the order of their trouble, idle ones not at all'
) or note(explain([ rows_of($observer) ]));

my $row = row_of($holder->pid);
is($row->{client}, 'billing@127.0.0.1',
	'a holder: the client is application and address');
like(
	$row->{state},
	qr/^idle in transaction \d+(\.\d)? (s|min)$/,
	'a holder: the state has its duration');
ok( $observer->poll(
		sub {
			row_of($holder->pid)->{doing} =~ /^blocks 2; after UPDATE t SE/;
		}),
	'a holder: it shows how many it blocks, and its last query');
ok( $observer->poll(
		sub {
			row_of($holder->pid)->{bar} eq '........';
		}),
	'a holder: the bar is client time only');

$row = row_of($victim->pid);
is($row->{client}, 'postgres',
	'a waiting session: without application name, the client is its role');
is($row->{rtt}, undef,
	'a waiting session: rtt is NULL on a Unix-domain socket');
like(
	$row->{state},
	qr/^executing \d/,
	'a waiting session: the state is executing');
ok( $observer->poll(
		sub {
			row_of($victim->pid)->{doing} =~
			  /^blocked by @{[ $holder->pid ]}: idle( (\d+|\d\.\d) (s|min))?; /;
		}),
	'a waiting session: it shows what blocks it, and what that does');
($row) = grep { $_->{pid} == $victim->pid }
  $observer->rows('SELECT * FROM pgnetlat_now(200)');
like(
	$row->{doing},
	qr/^blocked by @{[ $holder->pid ]} billing\@127\.0\.0\.1: idle in transaction for \d+(\.\d)? (s|min) after UPDATE t SET i = 0; DELETE FROM t$/,
	'a waiting session: a wide terminal gets all of that and its query');
my @cut = grep {
	$_->{doing} !~
	  /^blocked by @{[ $holder->pid ]}(: idle( (\d+|\d\.\d) (s|min))?)?(;|$)/
} $observer->rows(
	'SELECT width, doing FROM generate_series(70, 120) AS width, pgnetlat_now(width) WHERE pid = '
	  . $victim->pid);
is_deeply(\@cut, [], 'a waiting session: no width cuts a figure or a unit');
is($observer->error_of("SELECT * FROM pgnetlat_now($_)"),
	'', "a waiting session: a width of $_ is no error")
  foreach -2147483648, -1, 0, 2147483647, 'NULL';
ok( $observer->poll(
		sub {
			row_of($victim->pid)->{bar} eq '!!!!!!!!';
		}),
	'a waiting session: the bar is lock waits only');
is($row->{rate}, 0, 'a waiting session: the rate is 0');
like(
	row_of($queued->pid)->{doing},
	qr/^blocked by @{[ $holder->pid ]}: /,
	'a second waiting session: the holder blocks it, not the one before it');

$row = row_of($sleeper->pid);
like(
	$row->{doing},
	qr/^PgSleep; SELECT pg_sleep/,
	'a sleeping session: it shows its wait event and query');
ok( $observer->poll(
		sub {
			row_of($sleeper->pid)->{bar} eq '########';
		}),
	'a sleeping session: the bar is execution only');

# ---------------------------------------------------------------------------
# Prepared transactions have no process
# ---------------------------------------------------------------------------

$holder->run(q{PREPARE TRANSACTION 'held'});
ok( $observer->poll(
		sub {
			row_of($victim->pid)->{doing} =~ /^blocked by prepared xact(;|$)/;
		}),
	'a prepared transaction is named as what blocks a session');
$observer->run(q{ROLLBACK PREPARED 'held'});
$victim->responses;
$queued->responses;

# ---------------------------------------------------------------------------
# In a deadlock there is no root
# ---------------------------------------------------------------------------

my @deadlocked = map { client("deadlocked $_", dbname => 'utf8') } 0, 1;
$deadlocked[$_]->run(
	q{SET deadlock_timeout = '1h'},
	'BEGIN',
	"SELECT pg_advisory_xact_lock($_)") foreach 0, 1;
$deadlocked[$_]->put(query('SELECT pg_advisory_xact_lock(' . (1 - $_) . ')'))
  foreach 0, 1;
ok( $observer->poll(
		sub {
			$row = row_of($deadlocked[0]->pid);
			$row->{state} =~ / [1-9](\.\d)? s$/
			  && $row->{doing} =~
			  /^(behind|blocked by) @{[ $deadlocked[1]->pid ]}(?:;|:) /;
		}),
	'a deadlock: a session is behind the other one');
$_->cancel, $_->until('Z') foreach @deadlocked;
$_->finish foreach @deadlocked;

# ---------------------------------------------------------------------------
# Everything fits, whatever there is to show
# ---------------------------------------------------------------------------

my @nasty = (
	client('x' x 63, dbname => 'utf8', tcp => 1),
	client('', user => $wide_role, dbname => 'utf8'),
	client("tab\tand\nline", dbname => 'utf8', tcp => 1),
	client('latin1', dbname => 'latin1'));
my $text = encode('UTF-8', "\x{65e5}\x{672c}" x 600);
$nasty[0]->put(query("SELECT\n\r\t1, " . ('2, ' x 500) . 'pg_sleep(600)'));
$nasty[1]->put(query("/* $text */ SELECT pg_sleep(600)"));
$nasty[2]->put(
	query("\n\n\n\t  SELECT\npg_sleep(600), 'e\xcc\x81\xcc\x81', '\x01\x02'")
);
$nasty[3]->put(query("SELECT '\xe4\xfc\xff', pg_sleep(600)"));
foreach my $client (@nasty)
{
	ok( $observer->poll(
			sub {
				$observer->value(
					"SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = "
					  . $client->pid);
			}),
		'a session with an odd name or query executes');
}
my ($ret, $out, $err) = $node->psql(
	'utf8',
	'SELECT * FROM pgnetlat_now',
	extra_params =>
	  [ '-P', 'format=aligned', '-P', 'tuples_only=off', '-P', 'pager=off' ]);
my @lines = split /\n/, decode('UTF-8', $out);
cmp_ok(scalar(@lines), '>=', 2 + 5 + 1,
	'psql prints a line for each session');
note($out);

foreach my $line (@lines)
{
	my $columns = length($line);

	$columns++ while $line =~ /\p{East_Asian_Width=W}/g;
	$columns-- while $line =~ /\p{Nonspacing_Mark}/g;
	cmp_ok($columns, '<=', $width, "no line is longer than $width columns")
	  or note($line);
}
ok( (grep { length($_) > $width - 5 } @lines),
	'some line uses nearly all columns');
like($out, qr/ x{14}\@127\.0\.0\.1 /, 'a long name is cut off');
like(
	row_of($nasty[1]->pid)->{client},
	qr/^\[31m \xe6\x97\xa5/,
	'a name cannot move the cursor or turn the direction of text');
like(
	$out,
	qr/PgSleep; SELECT '\?\?/,
	'characters of another encoding become question marks');
like($out, qr/PgSleep; SELECT 1,/, 'white space becomes single blanks');

# ---------------------------------------------------------------------------
# Privileges
# ---------------------------------------------------------------------------

my $plain = client('plain', user => 'plain', dbname => 'utf8');
my $number = () =
  ($observer, $idle, $sleeper, $holder, $victim, $queued, @nasty);

# those that have finished may not have ended yet
ok( $observer->poll(
		sub {
			$observer->value(
				"SELECT count(*) FROM pgnetlat_sessions WHERE usename <> 'plain'"
			) == $number;
		}),
	"there are $number sessions of other roles");
my ($hidden, @others) = rows_of($plain);
is(scalar(@others), 0, 'other roles\' sessions are hidden');
is($hidden->{pid}, undef, 'the row about hidden sessions has no pid');
is( $hidden->{doing},
	"$number sessions are hidden; pg_read_all_stats shows them",
	'the row about hidden sessions has their number and the role to grant');
my $same = client('same', user => 'plain', dbname => 'utf8');
$same->run('BEGIN');
my @own = rows_of($plain);
is(scalar(@own), 2, 'a plain role sees its own sessions');
is($own[0]{pid}, $same->pid, "a plain role sees its own session's pid");
is($own[1]{doing}, $hidden->{doing},
	'its own sessions come before the row about hidden ones');
$observer->run('GRANT pg_read_all_stats TO plain');
cmp_ok(scalar(rows_of($plain)),
	'>', 5, 'pg_read_all_stats shows all sessions');
is(scalar(grep { !defined $_->{pid} } rows_of($plain)),
	0, 'a member of pg_read_all_stats has no row about hidden sessions');

$_->cancel foreach $sleeper, @nasty;
no_violations($observer);
$node->stop;
done_testing();
