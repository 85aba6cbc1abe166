SELECT datname, usename, queryid, query, info FROM public.pgnetlat_metrics_query;
