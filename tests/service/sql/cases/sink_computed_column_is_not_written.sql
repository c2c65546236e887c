-- plan: SELECT s.k AS k
-- with: d_small s_key
CREATE TABLE o (k BIGINT, twice AS k * 2) WITH ('connector' = 'print');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
