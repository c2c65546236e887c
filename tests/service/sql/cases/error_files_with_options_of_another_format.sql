-- error: option "csv.null-literal" has no effect for files of format json
-- fixed: 'format' = 'json', 'csv => 'format' = 'csv', 'csv
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json', 'csv.null-literal' = '-');
