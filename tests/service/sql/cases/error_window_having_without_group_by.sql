-- error: HAVING stands behind GROUP BY
-- fixed: HAVING k > 1 => WHERE k > 1 GROUP BY window_start, window_end, k
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
HAVING k > 1;
