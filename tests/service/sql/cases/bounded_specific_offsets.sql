-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, until specific-offsets 0:42 2:7) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'specific-offsets', 
    'scan.bounded.specific-offsets' = 'partition:2,offset:7;partition:0,offset:42'
);
