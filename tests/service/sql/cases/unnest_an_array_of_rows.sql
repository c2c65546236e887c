-- plan: CROSS JOIN UNNEST(c.items) AS item | WHERE (item.size > 1) | SELECT c.id AS id, UPPER(item.sku) AS name | INTO o blackhole()
-- with: carts out_id_name
INSERT INTO o SELECT c.id, UPPER(sku) FROM carts AS c CROSS JOIN UNNEST(c.items) AS item (sku, size) WHERE size > 1;
