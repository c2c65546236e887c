-- plan: INTO o delta(out/o, no row metadata) NOT NULL k
-- with: d_small s_key
CREATE TABLE o (k BIGINT, name STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'out/o', 'row-metadata' = 'false');
INSERT INTO o SELECT k, name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
