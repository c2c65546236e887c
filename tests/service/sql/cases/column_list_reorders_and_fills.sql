-- plan: SELECT s.k AS a, d.name AS b, NULL:INT AS c
-- with: d_small s_key
CREATE TABLE o (a BIGINT, b STRING, c INT) WITH ('connector' = 'print');
INSERT INTO o (b, a) SELECT name, k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
