-- error: expected INSERT INTO, SELECT or a statement set
-- fixed: EXPLAIN CREATE TABLE x (a INT) => EXPLAIN INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
-- with: d_price s_plain out_bigint_string
EXPLAIN CREATE TABLE x (a INT);
