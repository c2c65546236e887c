-- error: key.fields-prefix is set, but the value also has the key columns
-- fixed: , 'key.fields-prefix' = 'k' => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'k', 'key.fields-prefix' = 'k'
);
