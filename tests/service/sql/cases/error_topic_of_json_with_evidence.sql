-- error: option "snapshot.settle-time" has no effect with format json
-- fixed: 'format' = 'json', 'snapshot => 'format' = 'debezium-json', 'snapshot
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'snapshot.settle-time' = '1 s'
);
