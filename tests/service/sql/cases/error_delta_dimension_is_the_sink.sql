-- error: table "d" is both joined and written by the same job
-- fixed: 'path' = 'd/' => 'path' = 'o'
-- with: s_key … join_k
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'd/');
