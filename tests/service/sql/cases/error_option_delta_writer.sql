-- error: expected auto, columnar, spark
-- with: d_small s_key
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'out/o', 'sink.writer' = 'fast');
INSERT INTO o SELECT k, name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
