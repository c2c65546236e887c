-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT a, b FROM (SELECT id, currency FROM orders) AS q (a, b);
