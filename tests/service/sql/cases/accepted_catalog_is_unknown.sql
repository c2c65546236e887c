-- warning: The catalog "lake" has no tables but those that this script declares in it.
-- with: orders
USE CATALOG lake;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO lake.default_database.o SELECT id, currency FROM default_catalog.default_database.orders;
