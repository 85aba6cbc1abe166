/* pgnetlat--1.0.sql: put together by make from the files in sql/ */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pgnetlat" to load this file. \quit

-- Conventions.  Times are double precision milliseconds, moments timestamptz,
-- counts bigint.  Set-returning C functions return identifiers; the views over
-- them add the names.  What a caller may not see is NULL, as in pg_stat_activity.
-- It is hidden per row, in C, so the functions are as safe to expose as the views.
--
-- All functions read shared memory that changes while they run, so they are
-- VOLATILE.  They are restricted to the leader, so that a query sees one state,
-- not one per worker.  ROWS is that of a medium-sized server: 100 sessions and as
-- many client groups.  COST is that of one call, which does all of the work.
