-- plan: SELECT (orders.id + 1:BIGINT) AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
CREATE VIEW v AS SELECT currency, CAST(id + 1 AS BIGINT) FROM orders;
INSERT INTO o SELECT `EXPR$1`, currency FROM v;
