-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO TABLE o SELECT id, currency FROM orders;
