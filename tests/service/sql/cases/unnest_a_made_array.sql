-- plan: CROSS JOIN UNNEST(ARRAY[c.note, 'a']) AS t | SELECT c.id AS id, t.element AS name | INTO o blackhole()
-- with: carts out_id_name
INSERT INTO o SELECT c.id, t.x FROM carts AS c CROSS JOIN UNNEST(ARRAY[c.note, 'a']) AS t (x);
