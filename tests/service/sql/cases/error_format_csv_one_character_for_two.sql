-- error: delimiter, quote and escape character are not different
-- fixed: 'csv.escape-character' = ';' => 'csv.escape-character' = '\'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv', 'csv.field-delimiter' = ';', 'csv.escape-character' = ';'
);
