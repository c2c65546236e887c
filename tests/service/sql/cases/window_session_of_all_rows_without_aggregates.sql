-- plan: WINDOW SESSION of the clock, gap 3600000 ms | GROUP BY window_start, window_end | ROWS s.k AS r0
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, k FROM TABLE(SESSION(TABLE s, DESCRIPTOR(p), INTERVAL '1' HOUR));
