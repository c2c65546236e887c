-- plan: AGGREGATE COUNT(*):BIGINT AS a0, COUNT(s.t):BIGINT AS a1, COUNT(DISTINCT s.t):BIGINT AS a2, SUM(s.n):INT AS a3, MIN(s.ts):TIMESTAMP(3) AS a4, MAX(s.t):STRING AS a5, AVG(s.n):INT AS a6, LISTAGG(s.t, ','):STRING AS a7, LISTAGG(s.t, ' it''s '):STRING AS a8
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), a BIGINT, b BIGINT, c BIGINT, d INT, e TIMESTAMP(3), f STRING, g INT, h STRING, i STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, COUNT(*), COUNT(t), COUNT(DISTINCT t), SUM(n), MIN(ts), MAX(t), AVG(n), LISTAGG(t), LISTAGG(t, ' it''s ')
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
