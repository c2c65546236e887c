-- error: connector "blackhole" has no option "path"
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole', 'path' = 'x');
