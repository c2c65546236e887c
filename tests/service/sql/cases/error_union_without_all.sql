-- error: UNION without ALL keeps every row to leave out the second one
-- fixed: UNION SELECT => UNION ALL SELECT
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders UNION SELECT id, 'x' FROM orders;
