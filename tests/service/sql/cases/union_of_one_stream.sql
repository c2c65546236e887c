-- plan: INSERT 1 | WHERE (CAST(orders.price AS DECIMAL(12, 2)) > 10:DECIMAL(12, 2)) | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole() | INSERT 2 | WHERE (CAST(orders.price AS DECIMAL(12, 2)) <= 10:DECIMAL(12, 2)) | SELECT orders.id AS id, 'cheap' AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders WHERE price > 10 UNION ALL SELECT id, 'cheap' FROM orders WHERE price <= 10;
