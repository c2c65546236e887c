-- error: "ignore-parse-errors" and "fail-on-missing-field" are both true
-- fixed: , 'json.ignore-parse-errors' = 'true' => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.fail-on-missing-field' = 'true', 'json.ignore-parse-errors' = 'true'
);
