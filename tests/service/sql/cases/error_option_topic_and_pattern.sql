-- error: options "topic" and "topic-pattern" are both given
-- fixed: , 'topic-pattern' = 's.*' =>
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 's', 'topic-pattern' = 's.*', 'scan.startup.mode' = 'earliest-offset'
);
