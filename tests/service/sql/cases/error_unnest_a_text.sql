-- error: UNNEST takes an ARRAY or a MAP, not STRING
-- fixed: note STRING => note ARRAY<STRING>
-- with: carts out_id_name
INSERT INTO o SELECT id, t.x FROM carts CROSS JOIN UNNEST(note) AS t (x);
