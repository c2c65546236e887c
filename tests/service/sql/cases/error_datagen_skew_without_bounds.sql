-- error: option "fields.k.skew" needs
-- fixed: 'fields.k.skew' => 'fields.k.min' = '1', 'fields.k.max' = '9', 'fields.k.skew'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.skew' = '1.1'
);
