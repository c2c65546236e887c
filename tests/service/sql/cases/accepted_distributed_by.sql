-- warning: Table "x" has DISTRIBUTED, which has no effect: a record's partition is that of its key, by option 'key.fields'.
-- with: orders
CREATE TABLE x (id BIGINT, day STRING) DISTRIBUTED BY (id) INTO 4 BUCKETS WITH ('connector' = 'delta', 'path' = 'x');
INSERT INTO x SELECT id, currency FROM orders;
