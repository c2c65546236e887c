-- error: option "fields.k.end" is missing
-- fixed: 'fields.k.start' = '1' => 'fields.k.start' = '1', 'fields.k.end' = '9'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.start' = '1'
);
