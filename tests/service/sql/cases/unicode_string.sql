-- plan: SELECT orders.id AS id, '€\' AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT id, U&'\20AC\\' FROM orders;
