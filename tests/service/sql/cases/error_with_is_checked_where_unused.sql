-- error: unknown column "nothing"
-- fixed: nothing => id
-- with: orders out_id_name
INSERT INTO o WITH x AS (SELECT nothing FROM orders) SELECT id, currency FROM orders;
