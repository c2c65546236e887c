-- error: function GROUPING is not supported
-- fixed: SELECT ts, GROUPING(k) FROM s => SELECT window_start, GROUPING(k) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, k
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT ts, GROUPING(k) FROM s;
