
-- The page without its data.  make puts it together from the files in report/.
CREATE FUNCTION pgnetlat_report_page() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $function$ SELECT $page$
@include template.html@
$page$ $function$;

COMMENT ON FUNCTION pgnetlat_report_page() IS 'internal: the page of pgnetlat_report(), without its data';
