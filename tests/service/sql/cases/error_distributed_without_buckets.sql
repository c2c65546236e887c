-- error: expected BUCKETS
-- fixed: INTO 4 => INTO 4 BUCKETS
-- with: orders
CREATE TABLE x (id BIGINT, day STRING) DISTRIBUTED BY (id) INTO 4 WITH ('connector' = 'delta', 'path' = 'x');
INSERT INTO x SELECT id, currency FROM orders;
