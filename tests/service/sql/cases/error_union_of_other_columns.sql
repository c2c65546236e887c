-- error: UNION ALL has a query of 1 columns behind one of 2
-- fixed: UNION ALL SELECT id => UNION ALL SELECT id, 'x'
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders UNION ALL SELECT id FROM orders;
