-- error: Supported values are json, csv, raw, avro, avro-confluent, debezium-json, debezium-avro-confluent.
-- fixed: 'format' = 'protobuf' => 'format' = 'json'
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 's', 'format' = 'protobuf',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
