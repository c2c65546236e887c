-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small s_key … out_bigint join_k
CREATE TABLE IF NOT EXISTS s (other STRING) WITH ('connector' = 'print');
