-- plan: INTO o delta(/data/o/)
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = '/data/o/');
