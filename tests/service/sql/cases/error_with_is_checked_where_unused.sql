-- error: unknown column "nothing"
-- with: orders out_id_name
INSERT INTO o WITH x AS (SELECT nothing FROM orders) SELECT id, currency FROM orders;
