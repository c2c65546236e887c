-- error: has metadata column "at", which a dimension cannot have
-- fixed: , at BIGINT METADATA FROM 'offset' => 
-- with: s_plain out_bigint_string … join_name
CREATE TABLE d (id BIGINT, name STRING, at BIGINT METADATA FROM 'offset', PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json'
);
