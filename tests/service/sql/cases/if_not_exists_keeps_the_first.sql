-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small s_key
CREATE TABLE IF NOT EXISTS s (other STRING) WITH ('connector' = 'print');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
