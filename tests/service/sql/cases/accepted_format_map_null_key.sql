-- warning: Option "json.map-null-key.mode" of table "s" has no effect: keys of a MAP are never NULL.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.map-null-key.mode' = 'DROP'
);
