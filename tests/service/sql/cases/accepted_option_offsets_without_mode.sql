-- warning: Option "scan.startup.specific-offsets" of table "s" has no effect: it belongs to another mode than earliest-offset.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.startup.specific-offsets' = 'partition:0,offset:1'
);
