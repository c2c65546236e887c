-- error: PARTITIONED BY names "month", which is not a scalar physical column or is listed twice
-- fixed: PARTITIONED BY (month) => PARTITIONED BY (hour)
-- with: orders
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED BY (month) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT id, currency, 3 FROM orders;
