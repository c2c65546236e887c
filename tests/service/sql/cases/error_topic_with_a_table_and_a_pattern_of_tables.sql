-- error: options "debezium-json.source.table" and "debezium-json.source.table-pattern" are both given
-- fixed: 'debezium-json.source.table' = 'd', => 
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'debezium-json.source.table' = 'd', 'debezium-json.source.table-pattern' = 'd_.*'
);
