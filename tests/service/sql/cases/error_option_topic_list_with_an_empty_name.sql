-- error: topic names outside sluice.*, separated by semicolons
-- fixed: a;;b => a;b
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 'a;;b', 'scan.startup.mode' = 'earliest-offset'
);
