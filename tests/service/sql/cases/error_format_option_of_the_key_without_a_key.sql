-- error: option "key.json.fail-on-missing-field" has no effect with no key.format
-- fixed: , 'key.json.fail-on-missing-field' = 'true' => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'key.json.fail-on-missing-field' = 'true'
);
