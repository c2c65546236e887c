-- error: column "k" is DECIMAL(10, 2), which format raw does not support
-- fixed: k DECIMAL(10, 2) => k BIGINT
-- with: d_small … out_bigint join_k
CREATE TABLE s (k DECIMAL(10, 2), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'raw'
);
