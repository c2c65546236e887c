-- error: debezium-json.bit.columns names "flag", which is not a column
-- fixed: id; flag => id; name
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'debezium-json.bit.columns' = 'id; flag'
);
