-- error: a path without ".."
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'file://host/o');
