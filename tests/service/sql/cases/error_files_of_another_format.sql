-- error: option "format" is "orc", expected parquet, json, csv
-- fixed: 'orc' => 'parquet'
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'orc');
