-- plan: FROM s AS s kafka(a; b @ broker:9092, specific-offsets, a/0:42, a/1:7, b/0:42, b/1:7, until specific-offsets a/0:50 b/0:50) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 'a;b', 'scan.startup.mode' = 'specific-offsets',
    'scan.startup.specific-offsets' = 'partition:0,offset:42;partition:1,offset:7',
    'scan.bounded.mode' = 'specific-offsets', 'scan.bounded.specific-offsets' = 'partition:0,offset:50'
);
