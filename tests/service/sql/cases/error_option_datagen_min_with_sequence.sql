-- error: has no effect on a sequence
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.kind' = 'sequence', 'fields.k.min' = '1', 'fields.k.start' = '1', 'fields.k.end' = '2'
);
