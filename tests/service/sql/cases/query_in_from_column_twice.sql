-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT id0, currency FROM (SELECT user_id AS id, id, currency FROM orders) AS q;
