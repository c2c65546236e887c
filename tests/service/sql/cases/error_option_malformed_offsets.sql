-- error: partition:0,offset:42;partition:1,offset:300
-- fixed: '0:42' => 'partition:0,offset:42'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = '0:42'
);
