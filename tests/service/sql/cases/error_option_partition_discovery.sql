-- error: option "scan.topic-partition-discovery.interval" has no effect without "topic-pattern"
-- fixed: , 'scan.topic-partition-discovery.interval' = '5 min' =>
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.topic-partition-discovery.interval' = '5 min'
);
