-- error: 0 s to 1 d, such as 30 s or 5 min
-- fixed: 'often' => '5 min'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 's.*', 'scan.topic-partition-discovery.interval' = 'often', 'scan.startup.mode' = 'earliest-offset'
);
