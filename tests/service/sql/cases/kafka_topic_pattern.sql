-- plan: FROM s AS s kafka(topics like clicks-[a-z]+, looked for every 300000 ms @ broker:9092, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 'clicks-[a-z]+', 'scan.startup.mode' = 'earliest-offset'
);
