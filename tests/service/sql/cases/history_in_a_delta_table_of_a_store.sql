-- plan: INNER JOIN d AS d delta(s3://lake/users, newest version) until timestamp maximum of at, then json(users @ broker:9092) [id BIGINT NOT NULL, name STRING, at TIMESTAMP_LTZ(3); key id] ON s.k = d.id
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json',
    'history.connector' = 'delta', 'history.path' = 's3://lake/users', 'history.s3.access-key' = '${secret:key}', 'history.s3.secret-key' = '${secret:word}',
    'history.startup-column' = 'at'
);
