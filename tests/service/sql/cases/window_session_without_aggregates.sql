-- plan: WINDOW SESSION of s.ts, gap 3600000 ms | GROUP BY window_start, window_end, s.k AS k0 | ROWS s.n AS r0 | SELECT window_end AS at, (k0 + CAST(r0 AS BIGINT)) AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_end, k + n FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' HOUR));
