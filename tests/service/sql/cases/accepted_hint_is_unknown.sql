-- warning: Hint LOKUP has no effect: no hint of this name is known here.
-- with: orders out_id_name
INSERT INTO o SELECT /*+ LOKUP('table'='u') */ id, currency FROM orders;
