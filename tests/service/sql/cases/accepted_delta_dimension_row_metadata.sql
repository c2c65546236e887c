-- warning: Option "row-metadata" of table "d" has no effect on a dimension.
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd', 'row-metadata' = 'false');
