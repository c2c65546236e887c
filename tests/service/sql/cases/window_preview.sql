-- plan: INTO preview print(, 5 rows) | SELECT window_start AS window_start, a0 AS EXPR$1
-- with: s_event_time
SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end LIMIT 5;
