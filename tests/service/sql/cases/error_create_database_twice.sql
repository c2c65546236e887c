-- error: database "shop" is there already
-- fixed: CREATE DATABASE shop; CREATE DATABASE shop => CREATE DATABASE shop; CREATE DATABASE IF NOT EXISTS shop
-- with: orders
CREATE DATABASE shop; CREATE DATABASE shop;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
