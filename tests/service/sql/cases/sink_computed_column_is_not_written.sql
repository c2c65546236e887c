-- plan: SELECT s.k AS k
-- with: d_small s_key … join_k
CREATE TABLE o (k BIGINT, twice AS k * 2) WITH ('connector' = 'print');
