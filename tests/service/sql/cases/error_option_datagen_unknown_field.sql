-- error: names column "kk", which is not in the table
-- fixed: fields.kk.min => fields.k.min
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.kk.min' = '1'
);
