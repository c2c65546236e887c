-- error: ROW_NUMBER() over a stream is computed with
-- fixed: CAST(n + 1 AS STRING) => currency
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO k SELECT id, CAST(n + 1 AS STRING) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY proc_time DESC) AS n FROM orders) WHERE n = 1;
