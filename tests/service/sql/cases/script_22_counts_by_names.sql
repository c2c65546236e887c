-- plan: WATERMARK readings.timestamp AS (readings.timestamp - INTERVAL '2' SECOND) | WINDOW TUMBLE of readings.timestamp, size 600000 ms, offset 60000 ms | GROUP BY window_start, window_end | AGGREGATE AVG(readings.celsius):DOUBLE AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT CAST(window_start AS TIMESTAMP(3)) AS window_start, CAST(window_end AS TIMESTAMP(3)) AS window_end, a0 AS warmth | INTO preview print(, 100 rows)
-- with: readings
SELECT window_start, window_end, AVG(celsius) AS warmth
FROM TABLE(TUMBLE(
  DATA => TABLE readings,
  TIMECOL => DESCRIPTOR(`timestamp`),
  SIZE => INTERVAL '10' MINUTES,
  OFFSET => INTERVAL '1' MINUTES))
GROUP BY window_start, window_end;
