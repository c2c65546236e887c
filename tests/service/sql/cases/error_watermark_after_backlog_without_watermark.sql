-- error: option "scan.watermark.use-processing-time" has no effect without WATERMARK FOR
-- with: d_since … out_bigint_string join_name
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.watermark.use-processing-time' = 'after-backlog'
);
