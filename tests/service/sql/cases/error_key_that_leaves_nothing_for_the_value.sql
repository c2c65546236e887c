-- error: with EXCEPT_KEY no column is left for the value
-- fixed: 'value.fields-include' = 'EXCEPT_KEY' => 'value.fields-include' = 'ALL'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'k;id', 'value.fields-include' = 'EXCEPT_KEY'
);
