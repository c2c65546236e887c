-- error: unknown database "shop"
-- fixed: USE shop => CREATE DATABASE shop; USE default_database
-- with: orders
USE shop;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
