-- plan: WATERMARK orders.ts AS (orders.ts - INTERVAL '5' SECOND) | WINDOW TUMBLE of orders.ts, size 60000 ms | GROUP BY window_start, window_end, orders.currency AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS at, window_end AS until, k0 AS c, a0 AS n | INTO o blackhole()
-- with: orders out_windows
INSERT INTO o SELECT window_start, window_end, currency, COUNT(*) FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, currency;
