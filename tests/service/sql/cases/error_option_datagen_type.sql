-- error: datagen cannot make column "at_"
-- fixed: at_ BYTES => at_ AS CAST('2024-01-01 00:00:00' AS TIMESTAMP(3))
-- with: d_small
CREATE TABLE s (k BIGINT, at_ BYTES, p AS PROCTIME()) WITH (
    'connector' = 'datagen'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
