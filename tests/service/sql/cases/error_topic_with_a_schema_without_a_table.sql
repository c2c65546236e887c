-- error: option "debezium-json.source.schema" needs "debezium-json.source.table"
-- fixed: 'debezium-json.source.schema' => 'debezium-json.source.table' = 'd', 'debezium-json.source.schema'
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'debezium-json.source.schema' = 'shop'
);
