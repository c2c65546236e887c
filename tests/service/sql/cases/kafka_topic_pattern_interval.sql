-- plan: FROM s AS s kafka(topics like clicks-.*, looked for every 2000 ms @ broker:9092, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 'clicks-.*', 'scan.topic-partition-discovery.interval' = '2 s', 'scan.startup.mode' = 'earliest-offset'
);
