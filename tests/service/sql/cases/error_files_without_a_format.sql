-- error: option "format" is missing
-- fixed: 'path' = 'd' => 'path' = 'd', 'format' = 'parquet'
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'd');
