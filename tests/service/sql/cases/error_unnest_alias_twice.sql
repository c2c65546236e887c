-- error: alias "t" is used twice
-- fixed: AS t (x) => AS u (x)
-- fixed: t.x => u.x
-- with: carts out_id_name
INSERT INTO o SELECT t.id, t.x FROM carts AS t CROSS JOIN UNNEST(tags) AS t (x);
