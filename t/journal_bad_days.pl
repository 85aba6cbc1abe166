
# Copyright (c) 2026, the pgnetlat authors

# The journal on bad days: its worker is killed, the disk is full, the server is read-only.
# What was written is there afterwards, and rows come again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PgNetlat::Client;
use PgNetlat::Observer;
use PgNetlat::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my ($node, $observer) = start_node('bad_days', conf => <<'EOC');
pgnetlat.journal_database = 'postgres'
pgnetlat.journal_interval = '200ms'
pgnetlat.journal_size = '1GB'
pgnetlat.journal_keep = '365d'
restart_after_crash = on
EOC

# A minute has one row: those of this minute make room for more.
sub new_row_comes
{
	my ($what) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$observer->run(
		q{SET lock_timeout = '60s'},
		q{DELETE FROM pgnetlat_journal_rows WHERE at > now() - interval '1 day'}
	);
	return ok(
		$observer->poll(
			sub {
				$observer->value(
					q{SELECT count(*) FROM pgnetlat_journal WHERE at > now() - interval '1 day'}
				) > 0;
			}),
		"a row comes $what");
}

sub old_rows
{
	return $observer->value(
		q{SELECT count(*) FROM pgnetlat_journal WHERE at < now() - interval '1 day'}
	);
}

new_row_comes('at first');

# some of last month
$observer->run(<<'EOQ');
DO $$BEGIN
	FOR minute IN 1 .. 100 LOOP
		PERFORM pgnetlat_journal_write(now() - interval '41 days' + minute * interval '1 min', 60000, '[]', '[]', '[]', NULL);
	END LOOP;
END$$
EOQ
is(old_rows(), 100, 'there are older rows');

# ---------------------------------------------------------------------------
# The worker is killed
# ---------------------------------------------------------------------------

# It waits for a lock for a while, so that it can be found.
my $locker = PgNetlat::Client->named($node, 'locker');
my $log = log_size($node);
$locker->run('BEGIN', 'LOCK TABLE pgnetlat_journal_rows');
ok( $observer->poll(
		sub {
			my $pid = $observer->value(
				q{SELECT min(pid) FROM pg_stat_activity WHERE backend_type = 'pgnetlat journal'}
			);
			return $pid && kill 'KILL', $pid;
		}),
	'the worker is killed');
ok( $observer->poll(
		sub {
			server_log($node, $log) =~
			  /pgnetlat journal.* was terminated by signal 9/;
		}),
	'the server says so');
ok( $observer->poll(
		sub {
			return
			  if server_log($node, $log) !~ /all server processes terminated/;
			$observer =
			  eval { PgNetlat::Observer->connect($node) } // $observer;
			return eval { $observer->value('SELECT 1') };
		}),
	'and starts anew, as for any process that is killed');
is(old_rows(), 100, 'the older rows are there');
new_row_comes('afterwards');

# ---------------------------------------------------------------------------
# The disk is full
# ---------------------------------------------------------------------------

# No file may become larger than the largest one of the journal is now: the next report
# does not fit.
SKIP:
{
	skip('there is no prlimit', 5)
	  unless eval { run_log([ 'prlimit', '--version' ]) };
	my $limit = 20 * 1024 * 1024;
	my $largest =
	  q{SELECT max(pg_relation_size(c.reltoastrelid)) FROM pg_class c WHERE c.relname LIKE 'pgnetlat_journal_%'};
	my ($postmaster) =
	  slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	$observer->run(
		q{INSERT INTO pgnetlat_journal_rows
		  SELECT 1, -i, now() - interval '40 days' + i * interval '1 min', 60000, '[]', '[]', '[]',
				 (SELECT to_jsonb(string_agg(md5(random()::text), '')) FROM generate_series(1, 32 * 100 + i))
			FROM generate_series(1, 300) i});
	cmp_ok($observer->value($largest),
		'>', $limit, 'the journal has a large file');
	my $rows = old_rows();
	run_log([ 'prlimit', "--pid=$postmaster", "--fsize=$limit:" ]);
	$log = log_size($node);

	# the first ones may still fit into the last page
	ok( $observer->poll(
			sub {
				$observer->run(
					q{DELETE FROM pgnetlat_journal_rows WHERE at > now() - interval '1 day'}
				);
				server_log($node, $log) =~
				  /pgnetlat could not write its journal: could not (?:extend|write)/;
			}),
		'a full disk is logged');
	is( $observer->value(
			q{SELECT count(*) FROM pgnetlat_diagnose() WHERE verdict <> ''})
		  > 0,
		1,
		'the rules answer all the same');
	run_log([ 'prlimit', "--pid=$postmaster", '--fsize=unlimited:' ]);
	is(old_rows(), $rows, 'the older rows are there');

	# an error is tried again after some minutes, or when the configuration is reloaded
	$node->reload;
	new_row_comes('when there is room again');
}

# ---------------------------------------------------------------------------
# The server is read-only
# ---------------------------------------------------------------------------

$log = log_size($node);
$node->append_conf('postgresql.conf', 'default_transaction_read_only = on');
$node->reload;
my $reader = PgNetlat::Client->named($node, 'reader');
ok( $observer->poll(
		sub { $reader->value('SHOW default_transaction_read_only') eq 'on' }),
	'the server is read-only');
is($reader->value('SELECT pgnetlat_record()'),
	'f', 'no row is written, and that is no error');
$node->append_conf('postgresql.conf', 'default_transaction_read_only = off');
$node->reload;
ok( $observer->poll(
		sub {
			$observer->value('SHOW default_transaction_read_only') eq 'off';
		}),
	'the server is not read-only any more');
new_row_comes('then');
unlike(
	server_log($node, $log),
	qr/could not write its journal/,
	'nor does the log complain');

no_violations($observer);
$node->stop;
done_testing();
