-- error: column name "_batch" is reserved for the row metadata
-- fixed: 'path' = 'a' => 'path' = 'a', 'row-metadata' = 'false'
-- fixed: INSERT INTO o SELECT => INSERT INTO o (x) SELECT
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT, _batch BIGINT) WITH ('connector' = 'delta', 'path' = 'a');
