-- error: null-literal "a,b" contains a delimiter, quote or escape character
-- fixed: 'csv.null-literal' = 'a,b' => 'csv.null-literal' = 'ab'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv', 'csv.null-literal' = 'a,b'
);
