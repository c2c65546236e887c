-- error: option "late-records.path" has no effect without WATERMARK FOR
-- fixed: , 'late-records.path' = 'late' =>
-- with: d_since … out_bigint_string join_name
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'late-records.path' = 'late'
);
