-- warning: The catalog "c" has no tables but those that this script declares in it.
-- with: orders out_id_name
CREATE CATALOG c WITH ('type' = 'jdbc', 'base-url' = 'jdbc:mysql://db', 'password' = 'hunter2');
INSERT INTO o SELECT id, currency FROM orders;
