-- error: option "row-metadata" of table "d" has no effect on a dimension
-- fixed: , 'row-metadata' = 'false' =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd', 'row-metadata' = 'false');
