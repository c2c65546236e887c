-- plan: FROM s AS s datagen(10000/s) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen'
);
