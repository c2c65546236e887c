-- plan: WHERE (s.n > 1) | WINDOW TUMBLE of s.ts, size 60000 ms | SELECT window_start AS at, a0 AS x
-- with: s_event_time out_at_bigint
CREATE VIEW w AS SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
INSERT INTO o SELECT window_start, COUNT(*) FROM w WHERE n > 1 GROUP BY window_start, window_end;
