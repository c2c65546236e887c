-- error: has no type
-- fixed: a AS NULL => a AS CAST(NULL AS STRING)
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, a AS NULL, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
