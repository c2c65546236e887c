-- plan: FROM s AS s kafka(topics like clicks-.* @ broker:9092, specific-offsets, 0:3) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 'clicks-.*', 'scan.topic-partition-discovery.interval' = '0 s',
    'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:0,offset:3'
);
