-- error: option "value.json.ignore-parse-errors" of table "d" has no effect on a dimension
-- fixed: , 'value.json.ignore-parse-errors' = 'true' => 
CREATE TABLE d (d_id BIGINT, name STRING, PRIMARY KEY (d_id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.d_id;
