-- error: contains a ${…} that is not allowed
-- fixed: ${secret:t} => t
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = '${secret:t}', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
