-- error: PARTITIONED BY lists all columns of the table
-- fixed: (id, day, hour) WITH => (day, hour) WITH
-- with: orders
CREATE TABLE lake (id BIGINT, day STRING, hour INT) PARTITIONED BY (id, day, hour) WITH ('connector' = 'delta', 'path' = 'lake');
INSERT INTO lake SELECT id, currency, 3 FROM orders;
