-- error: datagen cannot make column "r.at" of BYTES
-- fixed: r ROW<`at` BYTES> => r ROW<`at` STRING>
-- with: d_by_shop out_string
CREATE TABLE s (k BIGINT, r ROW<`at` BYTES>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'rows-per-second' = '10'
);
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
