-- error: table "d" has several topics by "topic", a dimension has one
-- fixed: d1;d2 => d1
-- with: … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'topic' = 'd1;d2'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 's', 'scan.startup.mode' = 'earliest-offset'
);
