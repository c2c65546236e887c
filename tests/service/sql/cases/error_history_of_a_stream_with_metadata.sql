-- error: table "s" has a history and metadata columns, which files do not have
-- fixed: at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' => at TIMESTAMP_LTZ(3)
-- with: d_named … out_bigint_string join_name
CREATE TABLE s (k BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'clicks', 'history.format' = 'parquet'
);
