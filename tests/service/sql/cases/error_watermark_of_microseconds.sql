-- error: the time column "ts" is TIMESTAMP(6)
-- fixed: TIMESTAMP(6) => TIMESTAMP(3)
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
