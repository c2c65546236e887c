-- error: expected host:port
-- fixed: = 'b', => = 'b:9092',
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b', 'topic' = 's', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
