-- plan: CROSS JOIN UNNEST(carts.tags) AS t | WHERE (t.element <> 'x') | SELECT carts.id AS id, t.element AS name | INTO o blackhole()
-- with: carts out_id_name
INSERT INTO o SELECT id, t.tag FROM carts CROSS JOIN UNNEST(tags) AS t (tag) WHERE t.tag <> 'x';
