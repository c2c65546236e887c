-- error: column "k" of the key does not begin with "k_"
-- fixed: 'key.fields' = 'k' => 'key.fields' = 'k_1'
-- fixed: CREATE TABLE s (k BIGINT => CREATE TABLE s (k BIGINT, k_1 BIGINT
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'k', 'key.fields-prefix' = 'k_', 'value.fields-include' = 'EXCEPT_KEY'
);
