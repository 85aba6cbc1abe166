
# Copyright (c) 2026, the pgnetlat authors

# What a role may not see.

use strict;
use warnings;

use PgNetlat::Figures;
use Test::More;

our $observer;
my @found;

$observer->run(
	'CREATE ROLE plain',
	'GRANT USAGE ON SCHEMA figures TO plain',
	'GRANT SELECT ON ALL TABLES IN SCHEMA figures TO plain');
group(sessions => 3);
session(pid => $_) foreach 101 .. 103;
$observer->run('UPDATE figures.s SET requests = NULL', 'SET ROLE plain');
@found = diagnose();
$observer->run('RESET ROLE');
is(scalar(@found), 1, 'a role that may see nothing: there is one row');
is( "$found[0]{verdict}: $found[0]{evidence}",
	'not visible: 3 of 3 sessions, and any problems they have, are hidden from plain',
	'a role that may see nothing: the row says how much is hidden');
like(
	$found[0]{advice},
	qr/^GRANT pg_read_all_stats TO plain/,
	'a role that may see nothing: the advice names pg_read_all_stats');

$observer->run(
	'TRUNCATE figures.s',
	'UPDATE figures.c SET requests = NULL',
	'SET ROLE plain');
@found = diagnose();
$observer->run('RESET ROLE');
is( join('; ', map { "$_->{verdict}: $_->{evidence}" } @found),
	'not visible: Sessions that have ended, and any problems they had, are hidden from plain',
	'a role that may not see sessions that have ended: the row says so');
found();

1;
