-- error: table "d" has a history and no primary key
-- fixed: name STRING) => name STRING, PRIMARY KEY (id) NOT ENFORCED)
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING) WITH (
    'connector' = 'kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet'
);
