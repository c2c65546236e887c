-- plan: WHERE (orders.id > 1:BIGINT) | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
CREATE VIEW v AS WITH x AS (SELECT id, currency FROM orders) SELECT * FROM x;
INSERT INTO o WITH x AS (SELECT id, currency FROM v WHERE id > 1) SELECT * FROM x;
