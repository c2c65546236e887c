-- error: option "debezium-avro-confluent.basic-auth.user-info" needs "debezium-avro-confluent.basic-auth.credentials-source"
-- fixed: 'a:b' => 'a:b', 'debezium-avro-confluent.basic-auth.credentials-source' = 'USER_INFO'
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-avro-confluent',
    'debezium-avro-confluent.url' = 'http://registry:8081', 'debezium-avro-confluent.basic-auth.user-info' = 'a:b'
);
