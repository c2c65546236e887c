-- error: option "properties.group.id" is missing
-- fixed: 'group-offsets' => 'group-offsets', 'properties.group.id' = 'etl'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'group-offsets'
);
