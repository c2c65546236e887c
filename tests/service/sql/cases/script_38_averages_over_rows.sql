-- error: AVG(…) OVER (…) keeps the rows before each one
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
SELECT sensor_id, AVG(celsius) OVER (PARTITION BY sensor_id ORDER BY `timestamp` RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW) FROM readings;
