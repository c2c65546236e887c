-- plan: INNER JOIN d AS d delta(lake/users, version 17) until earliest-offset, then json(users @ broker:9092) [id BIGINT NOT NULL, name STRING, at TIMESTAMP_LTZ(3); key id] ON s.k = d.id
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json',
    'history.connector' = 'delta', 'history.path' = 'lake/users', 'history.version' = '17'
);
