-- error: topic "a" is given twice
-- fixed: a;b;a => a;b
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 'a;b;a', 'scan.startup.mode' = 'earliest-offset'
);
