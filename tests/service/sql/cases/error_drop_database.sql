-- error: DROP DATABASE of "shop", which the script uses
-- fixed: DROP DATABASE shop; => 
-- fixed: FROM default_database.orders => FROM default_database.orders
-- with: orders
CREATE DATABASE shop;
USE shop;
DROP DATABASE shop;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM default_database.orders;
