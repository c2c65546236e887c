-- plan: WINDOW SESSION of s.ts, gap 1000 ms | GROUP BY window_start, window_end, s.k AS k0
-- with: s_event_time out_at_bigint
CREATE VIEW w AS SELECT window_start AS a, window_end AS b, k AS key FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' SECOND));
INSERT INTO o SELECT a, COUNT(*) FROM w GROUP BY key, a, b;
