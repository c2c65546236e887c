-- error: unknown metadata key "header"
-- fixed: h STRING METADATA FROM 'header' => h MAP<STRING, BYTES> METADATA FROM 'headers'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, h STRING METADATA FROM 'header', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
