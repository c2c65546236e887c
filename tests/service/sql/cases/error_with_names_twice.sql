-- error: WITH names "x" twice
-- fixed: ), x AS => ), y AS
-- with: orders out_id_name
INSERT INTO o WITH x AS (SELECT id FROM orders), x AS (SELECT id FROM orders) SELECT id, 'a' FROM x;
