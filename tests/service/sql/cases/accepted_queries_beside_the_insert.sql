-- warning: Line 13 shows rows, which is no part of the job: sent alone it is a preview.
-- with: orders out_id_name
SELECT nothing FROM nowhere;
SHOW TABLES;
INSERT INTO o SELECT id, currency FROM orders;
SELECT * FROM o;
SHOW TABLES;
