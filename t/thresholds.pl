
# Copyright (c) 2026, the pgnetlat authors

# Thresholds of pgnetlat_diagnose() can be set, and are kept; its rules can be
# read where they run.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Figures;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('thresholds');

sub threshold
{
	my ($name) = @_;

	return $observer->value(
		"SELECT value FROM pgnetlat_thresholds WHERE name = '$name'");
}

# ---------------------------------------------------------------------------
# Setting
# ---------------------------------------------------------------------------

use_figures($observer);

# seven round trips of 5 ms for a transaction
sub chatty
{
	group(
		rtt => 5,
		requests => 700,
		transactions => 100,
		round_trips => 700,
		network_time => 3500,
		exec_time => 500);
	return join ' ', map { $_->{verdict} } found();
}
like(chatty(), qr/\bchatty\b/, 'seven round trips are chatty');
is($observer->value(q{SELECT pgnetlat_set_threshold('chatty_trips', 8)}),
	8, 'a threshold is set, and returned');
is(threshold('chatty_trips'), 8, 'the view shows what was set');
is( $observer->value(
		q{SELECT "default" FROM pgnetlat_thresholds WHERE name = 'chatty_trips'}
	),
	5,
	'and the default');
unlike(chatty(), qr/\bchatty\b/,
	'the next answer has it: seven are not chatty now');
$observer->run(q{SELECT pgnetlat_set_threshold('chatty_trips', 6)});
is(threshold('chatty_trips'), 6, 'it can be set again');
is( $observer->value(q{SELECT pgnetlat_set_threshold('chatty_trips', NULL)}),
	5, 'NULL restores the default');
is($observer->value('SELECT count(*) FROM pgnetlat_threshold_settings'),
	0, 'a default is not kept as a setting');
like(chatty(), qr/\bchatty\b/, 'seven are chatty again');

# Errors, each with a hint.
foreach my $case (
	[ q{'chatty_trip', 8}, 'does not exist', 'pgnetlat_thresholds lists' ],
	[ q{NULL, 8}, 'does not exist', 'pgnetlat_thresholds lists' ],
	[ q{'chatty_trips', -1}, 'invalid value', 'Its unit is count' ],
	[ q{'chatty_trips', 'NaN'}, 'invalid value', 'Its unit is count' ],
	[ q{'chatty_time', 'inf'}, 'invalid value', 'Its unit is ms' ],
	[ q{'chatty_share', 7}, 'invalid value', 'A share is from 0 to 1' ],
	[ q{'burst_loop', 7}, 'cannot be set', 'constant of the library' ])
{
	my ($arguments, $message, $hint) = @$case;
	my (undef, undef, $error) =
	  $node->psql('postgres', "SELECT pgnetlat_set_threshold($arguments)");

	like(
		$error,
		qr/ERROR:.*\Q$message\E.*HINT:.*\Q$hint\E/s,
		"$arguments is refused with a hint");
}
is($observer->value('SELECT count(*) FROM pgnetlat_threshold_settings'),
	0, 'what was refused is not kept');

# Whatever is set, no question raises an error.
foreach my $extreme ('0', q{CASE unit WHEN 'share' THEN 1 ELSE 1e12 END})
{
	$observer->run(
		"SELECT pgnetlat_set_threshold(name, $extreme) FROM pgnetlat_thresholds WHERE name NOT LIKE 'burst%'"
	);
	chatty();
	cmp_ok($observer->value('SELECT count(*) FROM pgnetlat_diagnose()'),
		'>=', 1, "diagnosis answers with all thresholds at $extreme");
	cmp_ok($observer->value('SELECT count(*) FROM pgnetlat_report_data()'),
		'>=', 1, "so does the report, with $extreme");
}
$observer->run('DELETE FROM pgnetlat_threshold_settings');

# The library's constants are those that it is built with.
my $source = slurp_file("$FindBin::RealBin/../src/store/burst.h");
my %constant =
  map { $_->{name} => $_->{value} }
  $observer->rows(
	q{SELECT name, value FROM pgnetlat_thresholds WHERE name LIKE 'burst%'});
while (my ($name, $value) = each %constant)
{
	my ($built) =
	  $source =~ /^#define \U$name\E(?:_NS)?\s+(?:INT64_C\()?(\d+)/m;

	is($built / ($name =~ /think/ ? 1e6 : 1),
		$value, "$name is that of the library");
}

# ---------------------------------------------------------------------------
# Who may
# ---------------------------------------------------------------------------

$observer->run('CREATE ROLE tuner LOGIN');
my $set = q{SELECT pgnetlat_set_threshold('chatty_trips', 9)};
my (undef, undef, $denied) = $node->psql('postgres', "SET ROLE tuner; $set");
like($denied, qr/permission denied/, 'a plain role may not set thresholds');
$observer->run(
	'GRANT EXECUTE ON FUNCTION pgnetlat_set_threshold(text, float8) TO tuner'
);
is($node->safe_psql('postgres', "SET ROLE tuner; $set"),
	9, 'the owner can let it');
is( $node->safe_psql(
		'postgres',
		q{SET ROLE tuner; SELECT value FROM pgnetlat_thresholds WHERE name = 'chatty_trips'}
	),
	9,
	'all may read them');

# ---------------------------------------------------------------------------
# Dump and restore
# ---------------------------------------------------------------------------

my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, 'postgres' ], 'pg_dump succeeds');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok(
	[
		'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump,
		$node->connstr('restored')
	],
	'the dump can be restored');
is( $node->safe_psql(
		'restored',
		q{SELECT string_agg(name || ' ' || value, ',') FROM pgnetlat_threshold_settings}
	),
	'chatty_trips 9',
	'what was set is there, and nothing else');

# ---------------------------------------------------------------------------
# Rules
# ---------------------------------------------------------------------------

my @files = glob "$FindBin::RealBin/../sql/judgement/diagnose/rules/*.sql";
is( $observer->value('SELECT count(*) FROM pgnetlat_rules'),
	scalar @files,
	'each rule has a row');
is( $observer->value(
		q{SELECT rule FROM pgnetlat_rules WHERE verdict = 'chatty'}),
	slurp_file(
		"$FindBin::RealBin/../sql/judgement/diagnose/rules/chatty.sql") =~
	  s/\A\n//r,
	'which is the text of its file');
like(
	$observer->value(
		q{SELECT thresholds FROM pgnetlat_rules WHERE verdict = 'chatty'}),
	qr/\bchatty_trips\b/,
	'and names its thresholds');

# What is wrong in a header is an error of make.
my $rules = PostgreSQL::Test::Utils::tempdir();
my $make = sub {
	my ($rule) = @_;

	mkdir "$rules/rules";
	append_to_file("$rules/rules/new.sql", $rule);

	# from a file: awk may end before it reads
	append_to_file("$rules/script", "\@verdicts\@\n")
	  unless -e "$rules/script";
	my ($out, $error) = ('', '');
	IPC::Run::run(
		[
			'awk',
			'-f',
			"$FindBin::RealBin/../sql/lists.awk",
			"$FindBin::RealBin/../sql/judgement/diagnose/thresholds.sql",
			@files,
			"$rules/rules/new.sql",
			'-'
		],
		'<',
		"$rules/script",
		'>',
		\$out,
		'2>',
		\$error);
	unlink "$rules/rules/new.sql";
	return "$out$error";
};
my $header =
  "-- Verdict: new\n-- Precedence: 145\n-- Headline: is new\n-- Meaning: new\n--\n";
like(
	$make->("${header}SELECT 'new'\n"),
	qr/\('new', 145\)/,
	'a rule with a header is in the list');
like(
	$make->("SELECT 'new'\n"),
	qr/the header lacks/,
	'a rule without a header is an error');
like(
	$make->(($header =~ s/145/140/r) . "SELECT 'new'\n"),
	qr/precedence is that of/,
	'so is one with the precedence of another');
like(
	$make->("${header}SELECT 'other'\n"),
	qr/does not give the verdict/,
	'and one whose verdict is another');
like(
	$make->("${header}SELECT 'new' WHERE path < min_rtt\n"),
	qr/should be t\.min_rtt/,
	'and one that reads a threshold as if it were a column');
like(
	$make->("${header}SELECT 'new' WHERE path < 17\n"),
	qr/17 should be a threshold/,
	'and one that compares with a number');

no_violations($observer);
$node->stop;
done_testing();
