-- plan: FROM orders AS orders kafka(orders @ broker:9092, earliest-offset) newest by id [id BIGINT, user_id BIGINT, currency STRING, price DECIMAL(10, 2), items ARRAY<STRING>, ts TIMESTAMP(3), proc_time = PROCTIME()] | WHERE (CAST(orders.price AS DECIMAL(12, 2)) > 3:DECIMAL(12, 2)) | INTO k upsert-kafka(k @ b:1, key id) NOT NULL id
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO k SELECT id, currency FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY proc_time DESC) AS n FROM orders) WHERE n = 1 AND price > 3;
