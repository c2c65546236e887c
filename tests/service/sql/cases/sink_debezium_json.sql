-- plan: INTO o kafka(o @ broker:9092, debezium-json)
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json');
SET 'table.exec.emit.allow-lateness' = '1 min';
