-- error: option "topic-pattern" is "clicks-(", which is not a regular expression
-- fixed: 'clicks-(' => 'clicks-.*'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 'clicks-(', 'scan.startup.mode' = 'earliest-offset'
);
