-- error: UNION ALL writes to topic "k"
-- fixed: 'connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json' => 'connector' = 'delta', 'path' = 'k'
-- with: orders
CREATE TABLE k (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
INSERT INTO k SELECT id FROM orders UNION ALL SELECT user_id FROM orders;
