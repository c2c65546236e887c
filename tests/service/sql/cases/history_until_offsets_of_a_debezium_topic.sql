-- plan: INNER JOIN d AS d filesystem(users, parquet, read once) until specific-offsets 0:5 1:7, then debezium-json(users @ broker:9092) [id BIGINT NOT NULL, name STRING, at TIMESTAMP_LTZ(3); key id] ON s.k = d.id
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet',
    'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:0,offset:5;partition:1,offset:7'
);
