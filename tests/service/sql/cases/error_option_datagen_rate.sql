-- error: expected a whole number from 1 to 10000000
-- fixed: 'rows-per-second' = '0' => 'rows-per-second' = '1'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'rows-per-second' = '0'
);
