-- error: option "history.order-column" is "day", which is not a column of the table
-- fixed: 'day' => 'at'
-- with: d_named … out_bigint_string join_name
CREATE TABLE s (k BIGINT, at TIMESTAMP_LTZ(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'clicks', 'history.format' = 'parquet',
    'history.order-column' = 'day'
);
