-- plan: SELECT orders.id AS id, orders.currency AS day, 3 AS hour | INTO lake delta(lake, partitioned by day, hour)
-- with: orders
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED BY (day, hour) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT id, currency, 3 FROM orders;
