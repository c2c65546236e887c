-- warning: Option "scan.topic-partition-discovery.interval" of table "s" has no effect: new partitions are found before each batch.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.topic-partition-discovery.interval' = '5 min'
);
