-- error: UNION ALL has a text and a time in one column
-- fixed: SELECT id, ts => SELECT id, CAST(ts AS STRING)
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders UNION ALL SELECT id, ts FROM orders;
