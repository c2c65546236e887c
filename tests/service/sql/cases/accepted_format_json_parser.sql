-- warning: Option "json.decode.json-parser.enabled" of table "s" has no effect: one parser reads every record.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.decode.json-parser.enabled' = 'true'
);
