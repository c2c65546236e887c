-- plan: WATERMARK readings.timestamp AS (readings.timestamp - INTERVAL '2' SECOND) | WINDOW TUMBLE of readings.timestamp, size 60000 ms | GROUP BY window_start, window_end, readings.sensor_id AS k0 | AGGREGATE MAX(readings.celsius):DOUBLE AS a0 | HAVING (a0 > CAST(80 AS DOUBLE)) | EMIT windows when the watermark has reached their end | LATE records INTO the job's own table | SELECT k0 AS sensor_id, a0 AS hottest | INTO alarms kafka(alarms @ broker:9092)
-- with: readings
CREATE TABLE alarms (
    sensor_id STRING,
    hottest DOUBLE
) WITH (
    'connector' = 'kafka',
    'topic' = 'alarms',
    'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);
INSERT INTO alarms SELECT sensor_id, m FROM (
  SELECT sensor_id, MAX(celsius) AS m FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(`timestamp`), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, sensor_id
) WHERE m > 80;
