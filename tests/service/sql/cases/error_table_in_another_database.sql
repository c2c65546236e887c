-- error: table "orders" is not in "default_catalog.shop"
-- fixed: FROM orders => FROM default_catalog.default_database.orders
-- with: orders
CREATE DATABASE shop;
USE shop;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
