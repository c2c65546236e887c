-- error: not from 1 to 65535
-- fixed: b:99999 => b:9999
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:99999', 'topic' = 's', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
