-- error: unknown table "x"
-- fixed: INSERT INTO o SELECT * FROM x => INSERT INTO o SELECT * FROM v
-- with: orders out_id_name
CREATE VIEW v AS WITH x AS (SELECT id, currency FROM orders) SELECT * FROM x;
INSERT INTO o SELECT * FROM x;
