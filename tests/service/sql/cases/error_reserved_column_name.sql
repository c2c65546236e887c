-- error: Put a reserved word between backticks
-- fixed: select BIGINT => `select` BIGINT
-- fixed: s.k => s.`select`
-- fixed: s.k => s.`select`
-- with: d_small … out_bigint join_k
CREATE TABLE s (select BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
