-- plan: SELECT orders.id AS id, orders.currency AS day | INTO lake delta(lake, partitioned by day)
-- with: orders
CREATE TABLE lake PARTITIONED BY (day) WITH ('connector' = 'delta', 'path' = 'lake') AS SELECT id, currency AS day FROM orders;
