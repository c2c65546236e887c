-- plan: FROM s AS s filesystem(clicks, parquet, read once) by at until timestamp maximum of at, then kafka(clicks @ broker:9092, timestamp) [k BIGINT, at TIMESTAMP_LTZ(3), p = PROCTIME()]
-- with: d_named … out_bigint_string join_name
CREATE TABLE s (k BIGINT, at TIMESTAMP_LTZ(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'clicks', 'history.format' = 'parquet',
    'history.order-column' = 'at', 'history.startup-column' = 'at', 'scan.startup.mode' = 'timestamp'
);
