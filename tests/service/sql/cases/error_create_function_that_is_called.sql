-- error: This is outside of what a job does. Code cannot be added to a job.
-- with: orders out_id_name
CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS trimm AS 'com.example.F' LANGUAGE JAVA;
INSERT INTO o SELECT id, trimm(currency) FROM orders;
