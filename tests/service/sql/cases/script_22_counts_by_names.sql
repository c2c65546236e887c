-- plan: WATERMARK readings.timestamp AS (readings.timestamp - INTERVAL '2' SECOND) | WINDOW TUMBLE of readings.timestamp, size 600000 ms, offset 60000 ms | GROUP BY window_start, window_end | AGGREGATE AVG(readings.celsius):DOUBLE AS a0 | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT CAST(window_start AS TIMESTAMP(3)) AS window_start, CAST(window_end AS TIMESTAMP(3)) AS window_end, a0 AS warmth | INTO preview print(, 100 rows)
CREATE TABLE readings (
    sensor_id STRING,
    celsius DOUBLE COMMENT 'as measured',
    ts_ms BIGINT,
    `timestamp` AS TO_TIMESTAMP_LTZ(ts_ms, 3),
    part INT METADATA FROM 'partition' VIRTUAL,
    WATERMARK FOR `timestamp` AS `timestamp` - INTERVAL '2' SECONDS
) WITH (
    'connector' = 'kafka',
    'topic' = 'readings',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
SELECT window_start, window_end, AVG(celsius) AS warmth
FROM TABLE(TUMBLE(
  DATA => TABLE readings,
  TIMECOL => DESCRIPTOR(`timestamp`),
  SIZE => INTERVAL '10' MINUTES,
  OFFSET => INTERVAL '1' MINUTES))
GROUP BY window_start, window_end;
