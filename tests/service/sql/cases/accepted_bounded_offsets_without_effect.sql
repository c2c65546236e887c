-- warning: Option "scan.bounded.specific-offsets" of table "s" has no effect: it belongs to another mode than latest-offset.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 
    'scan.bounded.specific-offsets' = 'partition:0,offset:1'
);
