-- error: metadata "offset" is BIGINT, not STRING
-- fixed: o STRING METADATA => o BIGINT METADATA
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, o STRING METADATA FROM 'offset', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
