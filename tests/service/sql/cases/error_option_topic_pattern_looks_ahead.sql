-- error: option "topic-pattern" uses a feature that only Java has
-- fixed: (?!-old) =>
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 'clicks(?!-old).*', 'scan.startup.mode' = 'earliest-offset'
);
