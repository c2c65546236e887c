-- error: expected a hint, found "LOKUP"
-- with: orders out_id_name
INSERT INTO o SELECT /*+ LOKUP('table'='u') */ id, currency FROM orders;
