-- error: numbers rows behind a condition or an INNER JOIN
-- fixed: FROM orders WHERE price > 3) WHERE n = 1 => FROM orders) WHERE n = 1 AND price > 3
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO k SELECT id, currency FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY proc_time DESC) AS n FROM orders WHERE price > 3) WHERE n = 1;
