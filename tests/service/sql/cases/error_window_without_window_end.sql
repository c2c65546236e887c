-- error: GROUP BY has no window_end
-- fixed: GROUP BY window_start; => GROUP BY window_start, window_end;
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start;
