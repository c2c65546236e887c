-- error: SIZE is in months or years
-- fixed: '1' MONTH => '30' DAY
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MONTH))
GROUP BY window_start, window_end;
