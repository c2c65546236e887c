-- error: CREATE FUNCTION UPPER: a function that is built in has this name
-- with: orders out_id_name
CREATE FUNCTION upper AS 'com.example.F';
INSERT INTO o SELECT id, currency FROM orders;
