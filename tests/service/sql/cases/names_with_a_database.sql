-- plan: SELECT x.id AS id, x.currency AS name | INTO o blackhole()
-- with: orders
CREATE DATABASE IF NOT EXISTS shop COMMENT 'x' WITH ('a' = 'b');
USE shop;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
USE default_catalog.default_database;
DROP TABLE IF EXISTS nothing;
INSERT INTO default_catalog.shop.o SELECT id, currency FROM `default_database`.`orders` AS x;
