-- warning: Option "properties.compression.type" of table "s" has no effect on a stream.
-- with: d_small … join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.compression.type' = 'lz4'
);
CREATE TABLE o (x BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
);
