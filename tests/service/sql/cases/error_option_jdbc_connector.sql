-- error: is not of MySQL, MariaDB or PostgreSQL
-- fixed: 'jdbc', 'url' = 'jdbc:oracle:thin:@db:1521:shop' => 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json'
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:oracle:thin:@db:1521:shop');
