-- warning: LOAD MODULE has no effect: functions and connectors are built in.
-- with: orders out_id_name
LOAD MODULE hive WITH ('hive-version' = '3.1.3');
INSERT INTO o SELECT id, currency FROM orders;
