-- plan: WATERMARK o.ts AS (o.ts - INTERVAL '5' SECOND) | WINDOW TUMBLE of o.ts, size 3600000 ms | GROUP BY window_start, window_end | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS at, window_time AS until, 'x' AS c, a0 AS n | INTO o blackhole()
-- with: orders out_windows
INSERT INTO o SELECT TUMBLE_START(o.ts, INTERVAL '1' HOUR), TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR), 'x', COUNT(*) FROM orders AS o GROUP BY TUMBLE(ts, INTERVAL '1' HOUR);
