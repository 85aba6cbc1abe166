
# Copyright (c) 2026, the pgnetlat authors

# EXPLAIN (NETLAT), from 18 on: what a statement costs beyond its plan.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('explain');

plan skip_all => 'core lets extensions have options of EXPLAIN from 18 on'
  if $node->pg_version < 18;

# What EXPLAIN prints.
sub explain_by
{
	my ($client, $options, $query) = @_;

	return join "\n",
	  map { values %$_ } $client->rows("EXPLAIN ($options) $query");
}

my $query = 'SELECT repeat(md5(i::text), 30) FROM generate_series(1, 100) i';
my $near = PgNetlat::Client->connect($node);
my $far = PgNetlat::Client->connect($node, tcp => 1);

unlike(explain_by($near, 'COSTS OFF', $query),
	qr/Netlat/, 'nothing is printed unless asked for');
unlike(explain_by($near, 'NETLAT OFF', $query),
	qr/Netlat/, '... nor if the option is off');
like(
	$near->error_of("EXPLAIN (NETLAT maybe) $query"),
	qr/netlat requires a Boolean value/,
	'a wrong value is an error of core');

my $text = explain_by($near, 'NETLAT', $query);
like(
	$text,
	qr/^Netlat:\n  Round Trip: not known: .*\n  Calls So Far: 0$/m,
	'a statement that has not run, on a Unix-domain socket');
unlike($text, qr/Estimated|Per Call/, '... has no figures');

$near->run($query) foreach 1 .. 3;
$text = explain_by($near, 'NETLAT', $query);
like($text, qr/^  Calls So Far: 3$/m, 'its calls are counted');
foreach my $what ('Executing Per Call', 'Estimated Application Time')
{
	my ($time) = $text =~ /^  \Q$what\E: ([\d.]+) ms$/m;
	cmp_ok($time // 0, '>', 0, "... and have $what");
}

# the size of the result is what the client would get
$text = explain_by($far, 'ANALYZE, SERIALIZE, NETLAT', $query);
my ($size) = $text =~ /^  Result Size: (\d+) bytes$/m;
cmp_ok($size, '>', 100 * 960,
	'SERIALIZE: the result is as large as its rows');
cmp_ok($size, '<', 100 * 1000, '... and their headers');
my ($rtt) = $text =~ /^  Round Trip: ([\d.]+) ms$/m;
SKIP:
{
	skip 'this kernel reports no round trip', 1 unless defined $rtt;
	my ($delivery) = $text =~ /^  Estimated Shortest Delivery: ([\d.]+) ms$/m;

	# 14, 29, 58 kB: the third round trip has the rest
	cmp_ok(abs($delivery - 3 * $rtt),
		'<', 0.003, '... and takes three round trips');
}
unlike(
	explain_by($far, 'ANALYZE, NETLAT', $query),
	qr/Result Size/,
	'without SERIALIZE, its size is not known');

# formats for programs
is( $far->value(q{SELECT 1 FROM pg_settings WHERE name = 'pgnetlat.enabled'}),
	1, 'the library is there');
my $json = explain_by($far, 'NETLAT, FORMAT JSON', $query);
is( $far->value(
		"SELECT \$json\$$json\$json\$::jsonb #>> '{0,Netlat,Calls So Far}'"),
	3, 'JSON');
like(explain_by($far, 'NETLAT, FORMAT YAML', $query),
	qr/Netlat: \n(?:\s+Round Trip: [\d.]+\n)?\s+Calls So Far: 3/, 'YAML');
unlike(explain_by($near, 'NETLAT, FORMAT JSON', $query),
	qr/Round Trip/, 'a program gets numbers or nothing');
like(explain_by($far, 'NETLAT, FORMAT XML', $query),
	qr{<Calls-So-Far>3</Calls-So-Far>}, 'XML');

# the account is that of the role that asks
$observer->run('CREATE ROLE plain LOGIN');
my $plain = PgNetlat::Client->connect($node, user => 'plain');
like(
	explain_by($plain, 'NETLAT', $query),
	qr/Calls So Far: 0/,
	'another role has its own calls');
$_->finish foreach $near, $far, $plain;

SKIP:
{
	skip 'auto_explain takes options of others from 19 on', 1
	  if $node->pg_version < 19;
	my $client = PgNetlat::Client->connect($node);
	my $log = log_size($node);

	$client->run(
		q{LOAD 'auto_explain'},
		'SET auto_explain.log_min_duration = 0',
		q{SET auto_explain.log_extension_options = 'netlat'}, $query);
	$client->finish;
	ok( $observer->poll(sub { server_log($node, $log) =~ /Calls So Far: 3/ }),
		'auto_explain shows it');
}

no_violations($observer);
$node->stop;
done_testing();
