-- plan: HAVING ((window_start > CAST('2024-01-01' AS TIMESTAMP(3))) AND (k0 = 1:BIGINT))
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k HAVING window_start > '2024-01-01' AND k = 1;
