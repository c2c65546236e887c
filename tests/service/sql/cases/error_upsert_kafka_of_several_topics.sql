-- error: one topic name outside sluice.*
-- fixed: d1;d2 => d1
-- with: … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'broker:9092', 'topic' = 'd1;d2', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 's', 'scan.startup.mode' = 'earliest-offset'
);
