-- error: ORDER BY without the time first keeps all rows until the stream ends
-- fixed: ORDER BY ts DESC NULLS LAST => 
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders ORDER BY ts DESC NULLS LAST;
