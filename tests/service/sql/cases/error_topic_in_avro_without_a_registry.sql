-- error: option "debezium-avro-confluent.url" is missing
-- fixed: '10 s' => '10 s', 'debezium-avro-confluent.url' = 'http://registry:8081'
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-avro-confluent',
    'snapshot.settle-time' = '10 s'
);
