-- error: option "properties.group.id" is missing
-- fixed: 'scan.bounded.mode' => 'properties.group.id' = 'etl', 'scan.bounded.mode'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'group-offsets'
);
