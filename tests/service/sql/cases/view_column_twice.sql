-- plan: SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
CREATE VIEW v AS SELECT user_id AS id, id, currency FROM orders;
INSERT INTO o SELECT id0, currency FROM v;
