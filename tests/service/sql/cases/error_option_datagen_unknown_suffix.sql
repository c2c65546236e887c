-- error: has no option "fields.k.var-len"
-- fixed: 'fields.k.var-len' = '1' => 'fields.k.start' = '1', 'fields.k.end' = '1'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.var-len' = '1'
);
