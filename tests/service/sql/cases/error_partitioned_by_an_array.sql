-- error: PARTITIONED BY names "tags", which is not a scalar physical column or is listed twice
-- fixed: PARTITIONED BY (tags) => 
-- with: orders
CREATE TABLE lake (id BIGINT, tags ARRAY<STRING>) PARTITIONED BY (tags) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT id, items FROM orders;
