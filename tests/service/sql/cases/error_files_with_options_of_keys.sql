-- error: option "key.csv.null-literal" has no effect for files of format csv
-- fixed: , 'key.csv.null-literal' = '-' =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'csv', 'key.csv.null-literal' = '-');
