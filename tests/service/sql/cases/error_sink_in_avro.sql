-- error: format debezium-avro-confluent cannot be written
-- fixed: 'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://r:1' => 'format' = 'debezium-json'
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://r:1');
SET 'table.exec.emit.allow-lateness' = '1 min';
