-- warning: Option "source.monitor-interval" of table "o" has no effect on a sink.
-- with: s_key … join_k
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'o', 'source.monitor-interval' = '1 s');
