-- The exporter's role, as monitoring/README.md has it.
CREATE ROLE pgnetlat_exporter LOGIN PASSWORD 'demo' IN ROLE pg_monitor;
