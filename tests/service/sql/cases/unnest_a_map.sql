-- plan: LEFT JOIN UNNEST(carts.labels) AS l | SELECT carts.id AS id, CONCAT(l.key, '=', l.value) AS name | INTO o blackhole()
-- with: carts out_id_name
INSERT INTO o SELECT id, k || '=' || v FROM carts LEFT JOIN UNNEST(labels) AS l (k, v) ON TRUE;
