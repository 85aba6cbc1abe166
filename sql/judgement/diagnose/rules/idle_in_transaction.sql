
-- Verdict: idle in transaction
-- Precedence: 80
-- Headline: leaves its transactions open while the application does something else
-- Meaning: the client thinks inside transactions
-- Lost: its think time there
--
-- A client that thinks in its transactions, while they hold locks.  A long
-- wait in progress is a pause, whatever came before.
 UNION ALL
SELECT n, 'idle in transaction', 'loss', 'client', a.think, a.think,
	   concat('Its client thinks for ', pgnetlat_time_text(working / xacts, a.think / xacts),
			  ' of each transaction, which holds locks', CASE WHEN blocking = 0 THEN ' that nobody waits for' END,
			  CASE WHEN kind = 'client' THEN '. One session has been idle in transaction for ' || nullif(pgnetlat_age(xact_age), '')
				   WHEN state = 'waiting in transaction' THEN '. It has been idle in transaction for ' || pgnetlat_age(greatest(state_age, 50)) END),
	   'Move application work outside the transaction: before BEGIN or after COMMIT.  A queue worker can claim its job in a transaction of its own.  Set idle_in_transaction_session_timeout to end forgotten transactions.',
	   NULL
  FROM accounts a, t
 CROSS JOIN LATERAL (SELECT greatest(sure_think / req, CASE state WHEN 'waiting in transaction'
													   THEN least(state_age, sure_think) END) AS each) x
 WHERE blocking < t.think_free * sure_think AND sure_think >= t.xact_think * xacts
   AND (each >= t.pause OR (each >= t.think AND sure_think >= t.think_share * working))
