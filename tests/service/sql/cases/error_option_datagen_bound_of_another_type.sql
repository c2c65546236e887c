-- error: not a value of TINYINT
-- fixed: '300' => '127'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k TINYINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.max' = '300'
);
