-- error: has no physical column
-- fixed: (p AS => (k BIGINT, p AS
-- with: d_small … out_bigint join_k
CREATE TABLE s (p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
