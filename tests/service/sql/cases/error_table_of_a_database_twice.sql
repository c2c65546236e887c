-- error: table "orders" is declared twice
-- fixed: shop.orders (id => shop.others (id
-- with: orders
CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
