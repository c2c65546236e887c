-- error: is NOT NULL
-- fixed:  NOT NULL => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT NOT NULL, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.null-rate' = '0.1'
);
