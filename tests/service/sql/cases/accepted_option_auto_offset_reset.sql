-- warning: Option "properties.auto.offset.reset" of table "s" has no effect: it belongs to another start than earliest-offset.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.group.id' = 'etl', 'properties.auto.offset.reset' = 'latest'
);
