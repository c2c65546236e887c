-- error: has PARTITION BY of something else than columns of the stream
-- fixed: PARTITION BY id + 1 => PARTITION BY id
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO k SELECT id, currency FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id + 1 ORDER BY proc_time DESC) AS n FROM orders) WHERE n = 1;
