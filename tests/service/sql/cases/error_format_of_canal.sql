-- error: Let Debezium write the table into a topic, in format 'debezium-json'.
-- fixed: canal-json => debezium-json
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'canal-json'
);
