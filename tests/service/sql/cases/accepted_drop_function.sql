-- warning: DROP FUNCTION has no effect: code cannot be added to a job.
-- with: orders out_id_name
DROP TEMPORARY FUNCTION IF EXISTS f;
INSERT INTO o SELECT id, currency FROM orders;
