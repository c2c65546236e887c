-- error: table "s" has a history and is a stream, which has none
-- fixed:     'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet' => 'scan.startup.mode' = 'earliest-offset'
-- with: d_named … out_bigint_string join_name
CREATE TABLE s (k BIGINT, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet'
);
