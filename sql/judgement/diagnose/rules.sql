
CREATE VIEW pgnetlat_rules AS
SELECT r.verdict, r.precedence, r.headline, r.meaning, r.lost,
	   ARRAY(SELECT t.name FROM pgnetlat_thresholds t WHERE r.rule ~ concat('\mt\.', t.name, '\M') ORDER BY t.name) AS thresholds,
	   r.rule
  FROM (VALUES
@rules@
  ) r (verdict, precedence, headline, meaning, lost, rule);

COMMENT ON VIEW pgnetlat_rules IS 'rules of pgnetlat_diagnose(), a row each';
COMMENT ON COLUMN pgnetlat_rules.verdict IS 'verdict of its findings';
COMMENT ON COLUMN pgnetlat_rules.precedence IS 'of several verdicts that explain the same lost time, the one with the lowest is shown';
COMMENT ON COLUMN pgnetlat_rules.headline IS 'what the report''s headline says of the subject';
COMMENT ON COLUMN pgnetlat_rules.meaning IS 'what it means, with the default thresholds';
COMMENT ON COLUMN pgnetlat_rules.lost IS 'which time counts as lost; NULL if none does';
COMMENT ON COLUMN pgnetlat_rules.thresholds IS 'names of the thresholds that the rule itself uses; what it reads may use more';
COMMENT ON COLUMN pgnetlat_rules.rule IS 'SQL of the rule, with its comments: a part of pgnetlat_diagnose()';

GRANT SELECT ON pgnetlat_rules TO PUBLIC;
