-- error: has no effect on a random STRING
-- fixed: 'fields.name.skew' = '1' => 'fields.name.length' = '3'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, name STRING, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.name.skew' = '1'
);
