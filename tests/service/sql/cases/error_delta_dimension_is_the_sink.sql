-- error: table "d" is joined, and written by the same job
-- fixed: 'path' = 'd/' => 'path' = 'o'
-- with: s_key
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'd/');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
