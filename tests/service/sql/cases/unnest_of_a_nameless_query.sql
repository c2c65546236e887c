-- plan: CROSS JOIN UNNEST(carts.tags) AS unnamed | CROSS JOIN UNNEST(carts.items) AS i | SELECT carts.id AS id, i.sku AS name | INTO o blackhole()
-- with: carts out_id_name
INSERT INTO o SELECT id, a FROM (SELECT id, tags, items FROM carts) CROSS JOIN UNNEST(tags) CROSS JOIN UNNEST(items) AS i (a, b);
