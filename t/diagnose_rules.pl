
# Copyright (c) 2026, the pgnetlat authors

# Each rule of pgnetlat_diagnose(), over figures that t/rules makes up: faults
# are found, the right one first, with the right numbers, and healthy clients
# have no findings.  No load is run, so that a busy machine changes nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Figures;
use PgNetlat::Test;
use Test::More;

our ($node, $observer) = start_node('rules');

use_figures($observer);

my @found = found();
is(scalar(@found), 1, 'no figures: there is one row');
is( "$found[0]{verdict}: $found[0]{evidence}",
	'no problem found: 0 requests',
	'no figures: the row says that there is no problem');
group(requests => 1, exec_time => 60);
expect(
	'no problem found',
	qr/^1 request: server 100 %, network 0 %, client 0 %$/,
	'one request');

foreach my $family (sort glob "$FindBin::RealBin/rules/*.pl")
{
	note($family =~ s/.*\///r);
	do $family or die "$family: " . ($@ || $!);
}

# ---------------------------------------------------------------------------
# Other roles' operators
# ---------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE trapped');
foreach my $trap (
	[
		'operator',
		'CREATE FUNCTION public.f(float8, int) RETURNS float8 LANGUAGE sql RETURN 1; '
		  . 'CREATE OPERATOR public.* (LEFTARG = float8, RIGHTARG = int, FUNCTION = public.f)',
		'DROP FUNCTION public.f CASCADE'
	],
	[
		'function',
		q{CREATE FUNCTION public.concat(text, text, text) RETURNS text LANGUAGE sql RETURN ''},
		'DROP FUNCTION public.concat'
	])
{
	my ($what, $plant, $remove) = @$trap;

	$node->safe_psql('trapped', $plant);
	my ($code, $out, $err) =
	  $node->psql('trapped', 'CREATE EXTENSION pgnetlat');
	like(
		$err,
		qr/extension "pgnetlat" would use $what/,
		"$what of another role: CREATE EXTENSION fails");
	$node->safe_psql('trapped', $remove);
}
$node->safe_psql('trapped', 'CREATE EXTENSION pgnetlat');

$node->stop;
done_testing();
