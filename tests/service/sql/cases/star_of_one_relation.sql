-- plan: SELECT d.id AS id, d.name AS name, s.k AS k
-- with: d_small s_key
CREATE TABLE o (id BIGINT, name STRING, k BIGINT) WITH ('connector' = 'print');
INSERT INTO o SELECT d.*, k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
