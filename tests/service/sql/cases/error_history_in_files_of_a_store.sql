-- error: option "history.path" is "s3://lake/users"
-- fixed: 's3://lake/users' => 'lake/users'
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 's3://lake/users', 'history.format' = 'csv'
);
