-- error: unknown table "y"
-- fixed: x AS (SELECT id FROM y), y AS (SELECT id FROM orders) => y AS (SELECT id FROM orders), x AS (SELECT id FROM y)
-- with: orders out_id_name
INSERT INTO o WITH x AS (SELECT id FROM y), y AS (SELECT id FROM orders) SELECT id, 'a' FROM x;
