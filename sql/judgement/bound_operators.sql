
-- The bodies and views above have been bound to operators and functions, by the types of
-- their operands.  A better match than PostgreSQL's own, in the extension's schema or in
-- public, would run as the role that diagnoses, so if there is one, CREATE EXTENSION
-- fails.
DO $$
DECLARE
	found text;
BEGIN
	SELECT pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) INTO found
	  FROM pg_catalog.pg_depend e
	  JOIN pg_catalog.pg_extension x ON x.oid OPERATOR(pg_catalog.=) e.refobjid AND x.extname OPERATOR(pg_catalog.=) 'pgnetlat'
	  LEFT JOIN pg_catalog.pg_rewrite r ON r.ev_class OPERATOR(pg_catalog.=) e.objid
	  JOIN pg_catalog.pg_depend d
		ON d.classid OPERATOR(pg_catalog.=) e.classid AND d.objid OPERATOR(pg_catalog.=) e.objid
		OR d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) r.oid
	 WHERE e.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
	   AND e.deptype OPERATOR(pg_catalog.=) 'e'
	   AND (d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_operator'::pg_catalog.regclass
			OR d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
			   AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend m
								WHERE m.classid OPERATOR(pg_catalog.=) d.refclassid
								  AND m.objid OPERATOR(pg_catalog.=) d.refobjid
								  AND m.refobjid OPERATOR(pg_catalog.=) x.oid
								  AND m.deptype OPERATOR(pg_catalog.=) 'e'))
	 LIMIT 1;
	IF found IS NOT NULL THEN
		RAISE EXCEPTION 'extension "pgnetlat" would use %', found
			USING ERRCODE = 'object_not_in_prerequisite_state',
				  HINT = 'Drop it, or create the extension in a schema in which only superusers can create objects.';
	END IF;
END
$$;
