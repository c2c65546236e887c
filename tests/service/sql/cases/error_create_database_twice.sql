-- error: database "shop" already exists
-- fixed: CREATE DATABASE shop; CREATE DATABASE shop => CREATE DATABASE shop; CREATE DATABASE IF NOT EXISTS shop
-- with: orders out_id_name
CREATE DATABASE shop; CREATE DATABASE shop;
INSERT INTO o SELECT id, currency FROM orders;
