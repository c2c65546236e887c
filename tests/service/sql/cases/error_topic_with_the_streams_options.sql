-- error: which leaves out rows of a dimension
-- fixed: , 'scan.startup.mode' = 'latest-offset' => 
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'scan.startup.mode' = 'latest-offset'
);
