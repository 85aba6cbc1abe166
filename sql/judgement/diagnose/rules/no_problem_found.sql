
-- Verdict: no problem found
-- Precedence: 250
-- Headline: has no problem that costs much
-- Meaning: nothing else
--
-- Shown only if there is no other finding.
 UNION ALL
SELECT 0, 'no problem found', NULL, 'last', 0, NULL,
	   CASE WHEN sum(busy) > 0 THEN format('%s: server %s %%, network %s %%, client %s %%',
			  pgnetlat_count_text(sum(requests)::float8, 'request', 'requests'),
			  round(100 * sum(exec_time + send_time - send_blocked_time + run_queue_wait_time) / nullif(sum(busy), 0)),
			  round(100 * sum(network_time + send_blocked_time - send_client_time) / nullif(sum(busy), 0)),
			  round(100 * sum(client_time - run_queue_wait_time + recv_time + send_client_time) / nullif(sum(busy), 0)))
	   ELSE '0 requests' END, NULL, NULL
  FROM accounts WHERE kind = 'client'
