-- plan: ROWS s.ts AS r0 | ROW_NUMBER 1 TO 1 PARTITION BY window_start, window_end, k0 ORDER BY r0 DESC, the newest of equal rows first
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY ts DESC) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn = 1;
