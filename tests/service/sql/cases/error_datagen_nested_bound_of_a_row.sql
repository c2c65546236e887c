-- error: option "fields.r.min" has no effect on a random ROW<`x` INT>
-- with: d_by_shop
CREATE TABLE s (k BIGINT, r ROW<x INT>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'fields.r.min' = '1'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
