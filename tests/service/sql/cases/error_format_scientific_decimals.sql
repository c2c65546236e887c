-- error: option "json.encode.decimal-as-plain-number" is "false", expected true
-- fixed: 'json.encode.decimal-as-plain-number' = 'false' => 'json.encode.decimal-as-plain-number' = 'true'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.encode.decimal-as-plain-number' = 'false'
);
