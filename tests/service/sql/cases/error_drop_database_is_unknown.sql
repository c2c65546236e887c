-- error: unknown database "shop"
-- fixed: DROP DATABASE shop; => 
-- with: orders out_id_name
DROP DATABASE shop;
INSERT INTO o SELECT id, currency FROM orders;
