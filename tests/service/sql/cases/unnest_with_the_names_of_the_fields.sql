-- plan: CROSS JOIN UNNEST(c.items) AS i | SELECT c.id AS id, i.sku AS name | INTO o blackhole()
-- with: carts out_id_name
INSERT INTO o SELECT c.id, i.sku FROM carts AS c, UNNEST(c.items) AS i;
