-- plan: CROSS JOIN UNNEST(c.tags) AS t | CROSS JOIN UNNEST(c.items) AS i | SELECT c.id AS id, CONCAT(t.element, i.sku) AS name | INTO o blackhole()
-- with: carts out_id_name
INSERT INTO o SELECT c.id, t.tag || i.sku FROM carts AS c CROSS JOIN UNNEST(tags) AS t (tag) CROSS JOIN UNNEST(items) AS i;
