-- error: which leaves out rows of a dimension
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'properties.group.id' = 'etl', 'properties.auto.offset.reset' = 'latest'
);
