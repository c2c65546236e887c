-- error: option "value.fields-include" needs "key.fields"
-- fixed: , 'value.fields-include' = 'EXCEPT_KEY' => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'value.fields-include' = 'EXCEPT_KEY'
);
