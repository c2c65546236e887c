-- plan: INTO o delta(file:///data/warehouse/o)
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'file:///data/warehouse/o');
