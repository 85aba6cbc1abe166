
-- ---------------------------------------------------------------------------
-- The journal: what was found, and where the time went, minute by minute
-- ---------------------------------------------------------------------------

-- One row for each call of pgnetlat_record(), in eight segments that are filled in turn.
-- The next one is truncated when the current one is full, so nothing is deleted or vacuumed.
--
-- No segment is a configuration table (pg_extension_config_dump), so pg_dump leaves the
-- rows out: a dump is of a database, but the journal is of a server, and restored elsewhere,
-- it would show the past of another one.  pg_upgrade, standbys and base backups have it.
CREATE TABLE pgnetlat_journal_rows (
	segment smallint NOT NULL,
	id bigint NOT NULL,
	at timestamptz NOT NULL,
	window_time double precision NOT NULL,
	findings jsonb NOT NULL,
	clients jsonb NOT NULL,
	statements jsonb NOT NULL,
	report jsonb,
	PRIMARY KEY (id, segment)
) PARTITION BY LIST (segment);
CREATE INDEX ON pgnetlat_journal_rows (at);

COMMENT ON TABLE pgnetlat_journal_rows IS 'internal: the rows of pgnetlat_journal';
COMMENT ON COLUMN pgnetlat_journal_rows.segment IS 'number of the segment: 1 to 8';
COMMENT ON COLUMN pgnetlat_journal_rows.id IS 'rows are numbered as they are written, whatever the clock does';
COMMENT ON COLUMN pgnetlat_journal_rows.at IS 'as in pgnetlat_journal';
COMMENT ON COLUMN pgnetlat_journal_rows.window_time IS 'as in pgnetlat_journal';
COMMENT ON COLUMN pgnetlat_journal_rows.findings IS 'as in pgnetlat_journal';
COMMENT ON COLUMN pgnetlat_journal_rows.clients IS 'as in pgnetlat_journal';
COMMENT ON COLUMN pgnetlat_journal_rows.statements IS 'as in pgnetlat_journal';
COMMENT ON COLUMN pgnetlat_journal_rows.report IS 'as in pgnetlat_journal';

DO $$
BEGIN
	FOR segment IN 1 .. 8 LOOP
		EXECUTE pg_catalog.format('CREATE TABLE pgnetlat_journal_%s (LIKE pgnetlat_journal_rows INCLUDING ALL)', segment);
		EXECUTE pg_catalog.format('ALTER TABLE pgnetlat_journal_rows ATTACH PARTITION pgnetlat_journal_%s FOR VALUES IN (%1$s)', segment);
		EXECUTE pg_catalog.format('COMMENT ON TABLE pgnetlat_journal_%s IS ''internal: a segment of pgnetlat_journal''', segment);
	END LOOP;
END
$$;

CREATE VIEW pgnetlat_journal WITH (security_barrier) AS
SELECT r.at, r.window_time, r.findings, r.clients, r.statements, r.report, r.id
  FROM pgnetlat_journal_rows r
 WHERE pg_has_role('pg_read_all_stats', 'USAGE');

COMMENT ON VIEW pgnetlat_journal IS
	'what pgnetlat_record() has written, one row for each minute; without pg_read_all_stats, no rows';
COMMENT ON COLUMN pgnetlat_journal.at IS 'end of the time that the row is about';
COMMENT ON COLUMN pgnetlat_journal.window_time IS 'milliseconds: length of that time, which begins where that of the previous row ends; one minute after a gap of more than 15 minutes';
COMMENT ON COLUMN pgnetlat_journal.findings IS 'array: the first 30 findings of pgnetlat_diagnose() over that time, with the sessions that are blocked (victims) and the latest statement of their holder (holder_query)';
COMMENT ON COLUMN pgnetlat_journal.clients IS 'array: the 20 busiest client groups of that time, most columns of pgnetlat_clients; what is 0 or NULL is left out';
COMMENT ON COLUMN pgnetlat_journal.statements IS 'array: the 20 statements of that time with the most time on the server and the network, most columns of pgnetlat_statements; what is 0 or NULL is left out';
COMMENT ON COLUMN pgnetlat_journal.report IS 'pgnetlat_report_data() without histograms and settings, with the latest 90 intervals of the history: every 15 minutes, and when a finding has been seen for the second time in a row; NULL in other rows';
COMMENT ON COLUMN pgnetlat_journal.id IS 'number of the row: rows are numbered as they are written, whatever the clock does';

GRANT SELECT ON pgnetlat_journal TO PUBLIC;
