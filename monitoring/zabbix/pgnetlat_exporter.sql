SELECT library_loaded, counting_enabled, role_sees_all FROM public.pgnetlat_metrics_exporter;
