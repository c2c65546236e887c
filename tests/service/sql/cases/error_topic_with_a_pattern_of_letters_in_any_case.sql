-- error: uses a feature that only Java has: (?i) and a character that is not ASCII
-- fixed: (?i)größen => größen
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'debezium-json.source.table-pattern' = '(?i)größen_.*'
);
