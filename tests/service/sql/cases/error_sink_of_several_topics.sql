-- error: table "o" has several topics by "topic", a sink has one
-- fixed: o1;o2 => o1
-- with: d_small … join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 's', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o1;o2', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');
