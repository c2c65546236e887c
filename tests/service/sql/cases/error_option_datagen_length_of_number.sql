-- error: has no effect on a random BIGINT
-- fixed: 'fields.k.length' = '3' => 'fields.k.max' = '3'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.length' = '3'
);
