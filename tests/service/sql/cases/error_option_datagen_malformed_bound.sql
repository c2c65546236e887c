-- error: expected a number
-- fixed: '1-1' => '42'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.min' = '1-1'
);
