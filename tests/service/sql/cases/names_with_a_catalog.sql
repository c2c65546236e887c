-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders
CREATE CATALOG mine WITH ('type' = 'generic_in_memory');
USE CATALOG mine;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
USE CATALOG default_catalog;
DROP DATABASE IF EXISTS old CASCADE;
INSERT INTO mine.default_database.o SELECT id, currency FROM default_catalog.default_database.orders;
