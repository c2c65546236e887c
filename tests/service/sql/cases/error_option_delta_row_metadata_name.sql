-- error: column name "_batch" is taken by the row metadata
-- fixed: 'path' = 'a' => 'path' = 'a', 'row-metadata' = 'false'
-- fixed: INSERT INTO o SELECT => INSERT INTO o (x) SELECT
-- with: d_small s_key
CREATE TABLE o (x BIGINT, _batch BIGINT) WITH ('connector' = 'delta', 'path' = 'a');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
