-- error: datagen cannot make column "at_"
-- fixed: at_ BYTES => at_ AS CAST('2024-01-01 00:00:00' AS TIMESTAMP(3))
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, at_ BYTES, p AS PROCTIME()) WITH (
    'connector' = 'datagen'
);
