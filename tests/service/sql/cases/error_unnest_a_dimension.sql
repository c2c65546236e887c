-- error: UNNEST of a column that is not in the stream
-- fixed:  CROSS JOIN UNNEST(d.tags) AS t (x) => 
-- fixed: SELECT c.id, t.x => SELECT c.id, d.tags[1]
-- with: carts out_id_name
CREATE TABLE d (id BIGINT, tags ARRAY<STRING>, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
INSERT INTO o SELECT c.id, t.x FROM carts AS c JOIN d FOR SYSTEM_TIME AS OF c.p ON c.id = d.id CROSS JOIN UNNEST(d.tags) AS t (x);
