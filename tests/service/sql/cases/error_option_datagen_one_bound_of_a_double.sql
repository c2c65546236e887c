-- error: option "fields.r.min" needs "fields.r.max"
-- fixed: 'fields.r.min' = '1' => 'fields.r.min' = '1', 'fields.r.max' = '2'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, r DOUBLE, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.r.min' = '1'
);
