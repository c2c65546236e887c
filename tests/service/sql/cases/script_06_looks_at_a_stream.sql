-- plan: WHERE (readings.celsius > CAST(30.5:DECIMAL(3, 1) AS DOUBLE)) | SELECT readings.sensor_id AS sensor_id, (((readings.celsius * CAST(9 AS DOUBLE)) / CAST(5 AS DOUBLE)) + CAST(32 AS DOUBLE)) AS fahrenheit, readings.timestamp AS timestamp | INTO preview print(, 100 rows)
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
SELECT sensor_id, celsius * 9 / 5 + 32 AS fahrenheit, `timestamp` FROM readings WHERE celsius > 30.5;
