-- error: table "s" has a history in csv, and a stream reads Parquet
-- fixed: 'csv' => 'parquet'
-- with: d_named … out_bigint_string join_name
CREATE TABLE s (k BIGINT, at TIMESTAMP_LTZ(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'clicks', 'history.format' = 'csv'
);
