
# Copyright (c) 2026, the pgnetlat authors

# Every query in the documentation runs, has something to show, and fits a
# terminal of 120 columns.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $width = 120;
my $root = "$FindBin::RealBin/..";
my %is_generated =
  map { $_ => 1 } qw(accuracy clients experiments performance reference);

# ---------------------------------------------------------------------------
# The queries: in SQL blocks, before the answers in transcripts, and in running text
# ---------------------------------------------------------------------------

# Each has a name, the SQL, whether it is to be shown expanded, and whether it has to
# show something.  What running text names is for any moment, so it may be empty.
sub queries_of
{
	my ($page) = @_;
	my $text = slurp_file("$root/$page");
	my (@queries, $name, $block);

	while ($text =~ /\G(.*)\n/g)
	{
		my $line = $1;

		if (defined $block && $line eq '```')
		{
			push @queries, query_of("$page: $name", $block);
			($name, $block) = ();
		}
		elsif (defined $block)
		{
			$block .= "$line\n";
		}
		elsif ($line =~ /^<!-- (?:query|incident): (\w+) -->$/)
		{
			$name = $1;
		}
		elsif ($line =~ /^```(\w*)$/)
		{
			$name //= $1 eq 'sql' ? 'a query' : 'no query';
			$block = '';
		}
		else
		{
			push @queries, map {
				{ %$_, passing => 1 }
			} query_of("$page: $_", $_)
			  foreach $line =~ /`(SELECT [^`]* FROM pgnetlat_[^`]*)`/g;
		}
	}
	return @queries;
}

sub query_of
{
	my ($name, $text) = @_;

	return if $name =~ /: no query$/ || $text !~ /^(?:SELECT|WITH) /;
	my ($sql, $answer) = $text =~ /^([^;]*);?(.*)$/s;
	my $expanded = $sql =~ s/\s*\\gx\s*$// || $answer =~ /^-\[ RECORD 1 \]/m;

	# the wide views, of which the pages say so
	$expanded ||= $sql =~ /^SELECT \* FROM pgnetlat_(?!now|top_)/;

	$sql =~ s/\s*\\watch.*$//;
	return { name => $name, sql => $sql, expanded => $expanded };
}

my @queries = map { queries_of($_) } 'README.md', map { "doc/$_.md" }
  grep { !$is_generated{$_} }
  map { m{([^/]+)\.md$} } sort glob "$root/doc/*.md";
cmp_ok(scalar @queries, '>', 15, 'the pages have queries');

# ---------------------------------------------------------------------------
# Something to show
# ---------------------------------------------------------------------------

my ($node, $observer) = start_node(
	'primary',
	init => { allows_streaming => 1 },
	conf => "pgnetlat.history_interval = 1s\n");
$observer->run(
	'CREATE TABLE stock AS SELECT id, 1000 AS amount FROM generate_series(1, 100) id',
	'CREATE TABLE order_lines AS SELECT id % 40 AS order_id, md5(id::text) AS item
	   FROM generate_series(1, 4000) id',
	'CREATE ROLE backoffice LOGIN',
	'CREATE ROLE shop_frontend LOGIN',
	'CREATE ROLE billing_batch LOGIN',
	'GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC');

# a standby that applies late what commits wait for
$node->backup('standby');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'standby', has_streaming => 1);
$standby->append_conf('postgresql.conf',
		"primary_conninfo = 'host=127.0.0.1 port="
	  . $node->port
	  . " application_name=standby'\nrecovery_min_apply_delay = 50ms\n");
$standby->start;
$node->append_conf('postgresql.conf',
	"synchronous_standby_names = 'standby'\n");
$node->reload;
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'}
			);
		}),
	'the standby is synchronous');

sub client
{
	my ($name, $role) = @_;

	return PgNetlat::Client->connect(
		$node,
		tcp => 1,
		user => $role,
		application_name => $name);
}

my $mobile = client('mobile', 'shop_frontend');
$mobile->run('SET synchronous_commit = remote_apply');
$mobile->run(
	'BEGIN',
	'UPDATE stock SET amount = amount + 1 WHERE id = 1',
	'SELECT count(*) FROM order_lines', 'COMMIT') for 1 .. 25;

my $backoffice = client('backoffice', 'backoffice');
$backoffice->run(
	'BEGIN',
	'SELECT id FROM stock',
	(map { "SELECT item FROM order_lines WHERE order_id = $_" } 1 .. 40),
	'COMMIT') for 1 .. 5;

client('cron', 'backoffice')->finish for 1 .. 3;

# one thinks while it holds a lock, until the end
my $billing = client('billing', 'billing_batch');
my @shop = map { client('shop', 'shop_frontend') } 1 .. 3;
my $update = 'UPDATE stock SET amount = amount - 1 WHERE id = 7';
$billing->run('BEGIN', $update);
$_->put(query($update)) foreach @shop;

# a journal of yesterday, and of the last minutes
ok( $observer->poll(
		sub {
			$observer->value(
				q{SELECT count(*) FROM pgnetlat_diagnose() WHERE verdict = 'blocks others'}
			);
		}),
	'somebody blocks others');
$observer->run(
	"SELECT pgnetlat_record(clock_timestamp() - interval '$_ min')")
  foreach 1443, 1442, 3, 2, 1;

# ---------------------------------------------------------------------------
# What psql shows
# ---------------------------------------------------------------------------

foreach my $query (@queries)
{
	my ($name, $sql, $expanded) = @{$query}{qw(name sql expanded)};
	my $deadline = now() + 15_000;
	my $count = eval {
		$observer->poll(
			sub {
				$observer->value("SELECT count(*) FROM ($sql\n) q")
				  || now() > $deadline && 'none';
			});
	};

	isnt($count // $@, 'none', "$name has something to show")
	  if !$query->{passing};

	# long lines of expanded output can be folded, and the pages say how
	my ($ret, $out, $err) = $node->psql(
		'postgres',
		$sql,
		extra_params => [
			'-P',
			'tuples_only=off',
			'-P',
			'pager=off',
			'-P',
			"columns=$width",
			$expanded
			? ('-x', '-P', 'format=wrapped')
			: ('-P', 'format=aligned')
		]);
	is("$ret $err", '0 ', "$name runs in psql");
	my ($longest) =
	  sort { length $b <=> length $a } split /\n/, $out;
	cmp_ok(length $longest, '<=', $width, "$name fits into $width columns")
	  or diag($out);
	note("$sql\n$out");
}

$billing->run('COMMIT');
$_->responses foreach @shop;
no_violations($observer);
$standby->stop;
$node->stop;
done_testing();
