SELECT datname, usename, application_name, client_addr, blocked_sessions, client_wait_seconds FROM public.pgnetlat_metrics_holder;
