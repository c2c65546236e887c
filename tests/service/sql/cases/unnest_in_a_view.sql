-- plan: CROSS JOIN UNNEST(carts.tags) AS t | WHERE (t.element LIKE 'a%') | SELECT carts.id AS id, t.element AS name | INTO o blackhole()
-- with: carts out_id_name
CREATE VIEW v AS SELECT id, tag FROM carts CROSS JOIN UNNEST(tags) AS t (tag);
INSERT INTO o SELECT id, tag FROM v WHERE tag LIKE 'a%';
