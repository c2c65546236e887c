-- error: option "scan.watermark.max-wait" has no effect without WATERMARK FOR
-- fixed: p AS PROCTIME()) WITH => p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP_LTZ(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.watermark.max-wait' = '30 s'
);
