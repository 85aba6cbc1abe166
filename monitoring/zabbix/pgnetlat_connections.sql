SELECT used, maximum, opened_total, failed_total FROM public.pgnetlat_metrics_connections;
