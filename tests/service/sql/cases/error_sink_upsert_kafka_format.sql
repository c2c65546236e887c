-- error: option "value.format" is "protobuf", expected json, csv, raw, avro, avro-confluent
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'protobuf');
