-- plan: SELECT orders.id AS id, UPPER(orders.currency) AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT * FROM (SELECT id, UPPER(currency) FROM orders) AS q;
