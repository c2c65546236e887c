-- error: below "fields.k.min" 5
-- fixed: '5', 'fields.k.max' = '1' => '1', 'fields.k.max' = '5'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.min' = '5', 'fields.k.max' = '1'
);
