-- error: Supported values are json, csv, raw, avro, avro-confluent, debezium-json, debezium-avro-confluent.
-- fixed: 'format' = 'protobuf' => 'format' = 'json'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 's', 'format' = 'protobuf',
    'scan.startup.mode' = 'earliest-offset'
);
