-- warning: USE MODULES has no effect: functions and connectors are built in.
-- with: orders out_id_name
USE MODULES core;
INSERT INTO o SELECT id, currency FROM orders;
