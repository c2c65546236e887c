-- plan: INTO o kafka(o @ broker:9092, key k, debezium-json)
-- with: d_since s_event_time … join_name_of_time
CREATE TABLE o (k BIGINT, y STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'key.format' = 'json', 'key.fields' = 'k');
