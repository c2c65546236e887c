-- error: unknown database "shop"
-- fixed: USE shop => CREATE DATABASE shop; USE default_database
-- with: orders out_id_name
USE shop;
INSERT INTO o SELECT id, currency FROM orders;
