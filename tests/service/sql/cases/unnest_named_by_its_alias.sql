-- plan: CROSS JOIN UNNEST(carts.tags) AS tag | WHERE (tag.element <> 'x') | SELECT carts.id AS id, tag.element AS name
-- with: carts out_id_name
INSERT INTO o SELECT id, tag FROM carts CROSS JOIN UNNEST(tags) AS tag WHERE tag.tag <> 'x';
