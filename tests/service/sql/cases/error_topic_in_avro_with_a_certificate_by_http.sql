-- error: option "debezium-avro-confluent.ssl.truststore.certificates" has no effect with an http address
-- fixed: http:// => https://
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-avro-confluent',
    'debezium-avro-confluent.url' = 'http://registry:8081', 'debezium-avro-confluent.ssl.truststore.certificates' = '${secret:ca}'
);
