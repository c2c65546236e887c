-- error: keeps the first row of each key, which needs every key that ever came
-- fixed: ORDER BY proc_time ASC => ORDER BY proc_time DESC
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO k SELECT id, currency FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY proc_time ASC) AS n FROM orders) WHERE n = 1;
