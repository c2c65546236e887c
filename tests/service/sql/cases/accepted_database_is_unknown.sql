-- warning: The database "shop" has no tables but those that this script declares in it.
-- with: orders
USE shop;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO shop.o SELECT id, currency FROM default_database.orders;
