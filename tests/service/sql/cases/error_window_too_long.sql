-- error: SIZE is longer than 100 years
-- fixed: '99999' DAY => '999' DAY
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '99999' DAY))
GROUP BY window_start, window_end;
