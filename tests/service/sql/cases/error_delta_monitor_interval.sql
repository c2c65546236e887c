-- error: option "source.monitor-interval" is "5", expected 100 ms to 1 h
-- fixed: = '5') => = '500 ms')
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd', 'source.monitor-interval' = '5');
