-- error: column "k" is declared twice
-- fixed: k INT, => k2 INT,
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, k INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
