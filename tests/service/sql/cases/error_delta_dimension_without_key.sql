-- error: table "d" has no primary key
-- fixed: name STRING) => name STRING, PRIMARY KEY (id) NOT ENFORCED)
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'd');
