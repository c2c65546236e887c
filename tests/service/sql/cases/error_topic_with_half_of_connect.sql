-- error: option "snapshot.connect.url" needs "snapshot.connect.connector"
-- fixed: 8083' => 8083', 'snapshot.connect.connector' = 'shop'
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'snapshot.connect.url' = 'http://connect:8083'
);
