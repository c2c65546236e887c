-- error: option "json.fail-on-missing-field" has no effect with format csv
-- fixed: , 'json.fail-on-missing-field' = 'true' => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv', 'json.fail-on-missing-field' = 'true'
);
