-- warning: Option "json.encode.decimal-as-plain-number" of table "s" has no effect: DECIMAL is always written with all its digits, never as 1E+2.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.encode.decimal-as-plain-number' = 'false'
);
