
# Copyright (c) 2026, the pgnetlat authors

# The journal stays within its bounds, by size and by age, and survives a crash and a clock
# that is set back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Observer;
use PgNetlat::Test;
use Test::More;

my ($node, $observer) = start_node('bounds');

sub set
{
	my ($name, $value) = @_;

	$observer->run("ALTER SYSTEM SET pgnetlat.$name = '$value'",
		'SELECT pg_reload_conf()');
	ok( $observer->poll(
			sub { $observer->value("SHOW pgnetlat.$name") eq $value }),
		"$name is $value");
	return;
}

# Rows for so many minutes, whose reports have so many kilobytes that cannot be compressed.
sub fill
{
	my ($minutes, $kilobytes) = @_;

	$observer->run(<<"EOQ");
DO \$\$BEGIN
	FOR minute IN 1 .. $minutes LOOP
		PERFORM pgnetlat_journal_write(timestamptz '2026-01-01 00:00 UTC' + minute * interval '1 min', 60000, '[]', '[]', '[]',
			(SELECT to_jsonb(string_agg(md5(random()::text), '')) FROM generate_series(1, 32 * $kilobytes)));
	END LOOP;
END\$\$
EOQ
	return;
}

sub journal
{
	my ($value) = @_;

	return $observer->value("SELECT $value FROM pgnetlat_journal");
}

my $size =
  q{SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'pgnetlat_journal_rows'::regclass};

# 600 rows of 20 kB
set(journal_size => '4MB');
fill(600, 20);
cmp_ok($observer->value($size), '<=', 4.5 * 1024 * 1024,
	'by size: the journal has no more than its bound, and what segments are over it'
);
cmp_ok(journal('count(*)'), '>=', 100, 'by size: most of that is rows');
is( journal('max(at) - min(at)'),
	journal(q{(count(*) - 1) * interval '1 min'}),
	'by size: those that are gone are the oldest ones');
is( journal(
		q{(extract(epoch FROM max(at) - '2026-01-01 00:00 UTC'::timestamptz) / 60)::integer}
	),
	600,
	'by size: the latest one is there');
is($observer->value('SELECT sum(n_tup_del) FROM pg_stat_user_tables'),
	0, 'nothing is deleted row by row');

# by age
$observer->run('TRUNCATE pgnetlat_journal_rows');
set(journal_size => '64MB');
set(journal_keep => '70min');
fill(200, 1);
cmp_ok(journal('count(*)'), '>=', 70, 'by age: the time to keep is there');
cmp_ok(journal('count(*)'), '<=', 81, '... and a segment more');

# a clock that was set back, before which there are rows: later rows have later numbers
my $rows = journal('count(*)');
$observer->run(
	q{SELECT pgnetlat_journal_write('2025-12-31 12:00 UTC', 60000, '[]', '[]', '[]', NULL)}
);
is(journal('count(*)'), $rows + 1,
	'a clock that was set back: a row is written');
is( $observer->value(
		'SELECT at < (SELECT max(at) FROM pgnetlat_journal) FROM pgnetlat_journal ORDER BY id DESC LIMIT 1'
	),
	't',
	'... and its number is the latest');

# a crash
$observer->finish;
$node->stop('immediate');
$node->start;
$observer = PgNetlat::Observer->connect($node);
is(journal('count(*)'), $rows + 1, 'all rows are there after a crash');
is($observer->value('SELECT pgnetlat_record()'),
	't', '... and the next one is written');

no_violations($observer);
$node->stop;
done_testing();
