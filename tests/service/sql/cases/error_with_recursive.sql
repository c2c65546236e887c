-- error: WITH RECURSIVE is not supported
-- fixed: WITH RECURSIVE x => WITH x
-- with: orders out_id_name
INSERT INTO o WITH RECURSIVE x AS (SELECT id FROM orders) SELECT id, 'a' FROM x;
