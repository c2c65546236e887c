-- plan: INTO o delta(out/o, spark writer)
-- with: d_small s_key
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'out/o', 'sink.writer' = 'spark');
INSERT INTO o SELECT k, name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
