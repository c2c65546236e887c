-- error: partition 0 is given twice
-- fixed: partition:0,offset:1; => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'specific-offsets', 
    'scan.bounded.specific-offsets' = 'partition:0,offset:1;partition:0,offset:2'
);
