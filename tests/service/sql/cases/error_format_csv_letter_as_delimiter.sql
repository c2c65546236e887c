-- error: option "csv.field-delimiter" is "q", expected one character of ASCII that is no letter
-- fixed: 'csv.field-delimiter' = 'q' => 'csv.field-delimiter' = '|'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv', 'csv.field-delimiter' = 'q'
);
