-- error: table "d" has several topics by "topic-pattern", a dimension has one
-- fixed: 'topic-pattern' = 'd.*' => 'topic' = 'd'
-- with: … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'topic-pattern' = 'd.*'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 's', 'scan.startup.mode' = 'earliest-offset'
);
