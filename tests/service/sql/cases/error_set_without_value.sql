-- error: expected a value, found ";"
-- fixed: SET pipeline.name = => SET 'pipeline.name' = 'x'
-- with: orders out_id_name
SET pipeline.name = ;
INSERT INTO o SELECT id, currency FROM orders;
