-- error: table "o" is declared twice
-- with: d_small s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
