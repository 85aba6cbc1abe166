SELECT severity, verdict, subject, datname, lost_sessions FROM public.pgnetlat_metrics_finding;
