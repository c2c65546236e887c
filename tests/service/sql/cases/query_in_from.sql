-- plan: WHERE ((CAST(orders.price AS DECIMAL(12, 2)) > 10:DECIMAL(12, 2)) AND (orders.id < 100:BIGINT)) | SELECT orders.id AS id, UPPER(orders.currency) AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT q.id, q.text FROM (SELECT id, UPPER(currency) AS text FROM orders WHERE price > 10) AS q WHERE q.id < 100;
