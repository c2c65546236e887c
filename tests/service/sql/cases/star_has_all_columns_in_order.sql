-- plan: SELECT s.k AS k, s.p AS p, d.id AS id, d.name AS name | INTO o print(row)
-- with: d_small s_key
CREATE TABLE o (k BIGINT, p TIMESTAMP_LTZ(3), id BIGINT, name STRING) WITH ('connector' = 'print', 'print-identifier' = 'row');
INSERT INTO o SELECT * FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
