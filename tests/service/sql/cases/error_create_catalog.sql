-- error: catalog "c" has tables that are declared elsewhere
-- fixed: 'jdbc' => 'generic_in_memory'
-- with: orders out_id_name
CREATE CATALOG c WITH ('type' = 'jdbc');
INSERT INTO o SELECT id, currency FROM orders;
