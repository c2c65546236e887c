-- error: option "value.json.fail-on-missing-field" begins with value., but the format is named by format
-- fixed: 'format' => 'value.format'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'value.json.fail-on-missing-field' = 'true'
);
