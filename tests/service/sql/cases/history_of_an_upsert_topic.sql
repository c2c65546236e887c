-- plan: INNER JOIN d AS d filesystem(users, parquet, read once) until earliest-offset, then json(users @ broker:9092) [id BIGINT NOT NULL, name STRING, at TIMESTAMP_LTZ(3); key id] ON s.k = d.id
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet'
);
