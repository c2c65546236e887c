-- error: table "lake" is PARTITIONED BY columns already
-- fixed: other PARTITIONED BY (day) => other
-- with: orders
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED BY (day, hour) WITH ('connector' = 'delta', 'path' = 'lake');
CREATE TABLE other PARTITIONED BY (day) WITH ('path' = 'other') LIKE lake;
INSERT INTO lake SELECT id, currency, 3 FROM orders;
