-- error: Remove it: it configures Flink's JSON parser.
-- fixed: , 'json.decode.json-parser.enabled' = 'true' => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.decode.json-parser.enabled' = 'true'
);
