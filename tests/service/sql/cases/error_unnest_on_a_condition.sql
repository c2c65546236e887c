-- error: UNNEST is joined ON a condition
-- fixed: ON t.x = note => ON TRUE WHERE t.x = note
-- with: carts out_id_name
INSERT INTO o SELECT id, t.x FROM carts JOIN UNNEST(tags) AS t (x) ON t.x = note;
