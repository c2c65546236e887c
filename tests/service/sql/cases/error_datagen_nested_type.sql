-- error: datagen cannot make column "r.at" of DATE
-- with: d_by_shop
CREATE TABLE s (k BIGINT, r ROW<`at` DATE>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'rows-per-second' = '10'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
