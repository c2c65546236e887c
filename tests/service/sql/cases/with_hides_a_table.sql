-- plan: WHERE (orders.id > 1:BIGINT) | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o WITH orders AS (SELECT id, currency FROM orders WHERE id > 1) SELECT * FROM orders;
