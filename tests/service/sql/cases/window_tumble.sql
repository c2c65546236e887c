-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND) | WINDOW TUMBLE of s.ts, size 60000 ms | GROUP BY window_start, window_end | AGGREGATE COUNT(*):BIGINT AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT window_start AS at, a0 AS x
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
