-- plan: INNER JOIN d AS d filesystem(users, parquet, read once) until timestamp maximum of at, then debezium-json(users @ broker:9092) [id BIGINT NOT NULL, name STRING, at TIMESTAMP_LTZ(3); key id] ON s.k = d.id
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet',
    'scan.startup.mode' = 'timestamp', 'history.startup-column' = 'at'
);
