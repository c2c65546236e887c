-- error: LIMIT is not supported here
-- fixed:  LIMIT 3 => 
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM (SELECT id, currency FROM orders LIMIT 3);
