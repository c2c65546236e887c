-- error: a join behind SESSION
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
CROSS JOIN UNNEST(ARRAY[k, n]) AS u (x) GROUP BY window_start, window_end;
