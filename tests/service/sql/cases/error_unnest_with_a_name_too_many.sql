-- error: "t" names 2 columns, an element has 1
-- fixed: (x, y) => (x)
-- with: carts out_id_name
INSERT INTO o SELECT id, t.x FROM carts CROSS JOIN UNNEST(tags) AS t (x, y);
