-- error: WITH ORDINALITY is not supported
-- fixed:  WITH ORDINALITY => 
-- with: carts out_id_name
INSERT INTO o SELECT id, t.x FROM carts CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t (x);
