SELECT datname, usename, sessions, busy_max, needed FROM public.pgnetlat_metrics_pool;
