-- error: option "topic" is "sluice.x.d"
-- fixed: sluice.x.d => x.d
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 'sluice.x.d', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
