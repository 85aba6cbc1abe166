SELECT version, info FROM public.pgnetlat_metrics_build;
