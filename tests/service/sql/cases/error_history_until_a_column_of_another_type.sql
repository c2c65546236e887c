-- error: Such columns are at.
-- fixed: 'name' => 'at'
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet',
    'history.startup-column' = 'name'
);
