-- error: expected BY, found "("
-- fixed: PARTITIONED ( => PARTITIONED BY (
-- with: orders
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED (day, hour) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT id, currency, 3 FROM orders;
