-- error: for the first row of each key in a window number the rows of TABLE(TUMBLE
-- fixed: PARTITION BY id ORDER BY ts => PARTITION BY window_start, window_end, id ORDER BY ts
-- fixed: FROM orders) => FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' DAY)))
-- with: orders
CREATE TABLE k (id BIGINT, currency STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO k SELECT id, currency FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) AS n FROM orders) WHERE n = 1;
