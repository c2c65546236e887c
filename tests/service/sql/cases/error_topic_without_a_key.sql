-- error: table "d" has no primary key, and its records are changes of rows
-- fixed: name STRING) WITH => name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json'
);
