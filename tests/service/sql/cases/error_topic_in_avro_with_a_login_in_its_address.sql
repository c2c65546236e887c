-- error: option "debezium-avro-confluent.url" is "http:***@registry:8081", expected http://host:port or https://host:port, without a login
-- fixed: me:x@ => 
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-avro-confluent',
    'debezium-avro-confluent.url' = 'http://me:x@registry:8081'
);
