-- error: DISTRIBUTED is not supported
-- fixed:  DISTRIBUTED BY (id) INTO 4 BUCKETS => 
-- with: orders
CREATE TABLE x (id BIGINT, day STRING) DISTRIBUTED BY (id) INTO 4 BUCKETS WITH ('connector' = 'delta', 'path' = 'x');
INSERT INTO x SELECT id, currency FROM orders;
