-- error: USE MODULES is not supported
-- fixed: USE MODULES core; => 
-- with: orders out_id_name
USE MODULES core;
INSERT INTO o SELECT id, currency FROM orders;
