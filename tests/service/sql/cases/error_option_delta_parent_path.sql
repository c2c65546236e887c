-- error: a path without ".."
-- with: d_small s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'a/../../etc');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
