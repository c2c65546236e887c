-- error: relative to the warehouse, absolute, or file:///
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'gs://bucket/o');
