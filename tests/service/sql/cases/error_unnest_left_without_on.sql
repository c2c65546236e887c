-- error: expected ON TRUE, found ";"
-- fixed: AS t (x) => AS t (x) ON TRUE
-- with: carts out_id_name
INSERT INTO o SELECT id, t.x FROM carts LEFT JOIN UNNEST(tags) AS t (x);
