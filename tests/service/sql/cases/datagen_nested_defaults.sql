-- plan: FROM s AS s datagen(10000/s) [k BIGINT, r ROW<`id` BIGINT, `tags` ARRAY<STRING>>, m MAP<STRING, ROW<`n` INT>>, p = PROCTIME()]
-- with: d_by_shop
CREATE TABLE s (k BIGINT, r ROW<id BIGINT, tags ARRAY<STRING>>, m MAP<STRING, ROW<n INT>>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'rows-per-second' = '10000'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
