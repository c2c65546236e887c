-- plan: CROSS JOIN UNNEST(carts.tags) AS unnamed | SELECT carts.id AS id, carts.tags AS tags, carts.items AS items, carts.labels AS labels, carts.note AS note, carts.p AS p, unnamed.element AS EXPR$0 | INTO preview print(, 100 rows)
-- with: carts
SELECT * FROM carts CROSS JOIN UNNEST(tags);
