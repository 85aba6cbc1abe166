CREATE EXTENSION IF NOT EXISTS pgnetlat;
CREATE TABLE parent (id int PRIMARY KEY, name text);
INSERT INTO parent SELECT i, repeat('x', 20) FROM generate_series(0, 1999) i;
CREATE TABLE child (id int PRIMARY KEY, parent_id int REFERENCES parent);
INSERT INTO child SELECT i, i / 2 FROM generate_series(0, 3999) i;
CREATE INDEX ON child (parent_id);
CREATE TABLE sink (id int, payload text);
ANALYZE;
GRANT ALL ON parent, child, sink TO PUBLIC;
