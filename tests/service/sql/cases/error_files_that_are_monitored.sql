-- error: Remove it: files are read once
-- fixed: , 'source.monitor-interval' = '1 s' =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json', 'source.monitor-interval' = '1 s');
