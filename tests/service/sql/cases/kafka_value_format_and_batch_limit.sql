-- plan: FROM s AS s kafka(s @ a:9092,b:9093, earliest-offset, 5000 records) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'a:9092, b:9093', 'value.format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.max-records-per-batch' = '5000'
);
