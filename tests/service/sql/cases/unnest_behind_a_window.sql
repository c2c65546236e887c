-- plan: CROSS JOIN UNNEST(carts.tags) AS t | SELECT carts.id AS id, t.element AS name
-- with: carts out_id_name
INSERT INTO o SELECT id, t.x FROM TABLE(TUMBLE(TABLE carts, DESCRIPTOR(p), INTERVAL '1' DAY)) CROSS JOIN UNNEST(tags) AS t (x);
