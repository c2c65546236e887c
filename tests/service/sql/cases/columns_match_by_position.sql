-- plan: SELECT s.k AS a, d.name AS b
-- with: d_small s_key
CREATE TABLE o (a BIGINT, b STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT k AS b, name AS a FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
