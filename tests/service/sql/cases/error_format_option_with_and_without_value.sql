-- error: option "value.json.fail-on-missing-field" is given with and without value.
-- fixed: 'json.fail-on-missing-field' = 'true', => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'value.format' = 'json', 'json.fail-on-missing-field' = 'true', 'value.json.fail-on-missing-field' = 'true'
);
