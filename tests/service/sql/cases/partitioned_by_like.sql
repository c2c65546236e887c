-- plan: SELECT orders.id AS id, orders.currency AS day, 3 AS hour | INTO other delta(other, partitioned by day, hour)
-- with: orders
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED BY (day, hour) WITH ('connector' = 'delta', 'path' = 'lake');
CREATE TABLE other WITH ('path' = 'other') LIKE lake;
INSERT INTO other SELECT id, currency, 3 FROM orders;
