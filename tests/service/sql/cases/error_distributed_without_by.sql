-- error: expected BY or INTO
-- fixed: DISTRIBUTED HASH(id) => DISTRIBUTED BY HASH(id)
-- with: orders
CREATE TABLE x (id BIGINT, day STRING) DISTRIBUTED HASH(id) INTO 4 BUCKETS WITH ('connector' = 'delta', 'path' = 'x');
INSERT INTO x SELECT id, currency FROM orders;
