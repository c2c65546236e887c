-- error: expected true, false
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'a', 'row-metadata' = 'maybe');
