-- error: option "topic" is missing
-- fixed: 'kafka', 'properties => 'kafka', 'topic' = 's', 'properties
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
