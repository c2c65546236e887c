-- error: column "a.element" of datagen has 1200 values a row, expected at most 1000
-- fixed: '400' => '400', 'fields.a.element.length' = '2'
-- with: d_by_shop
CREATE TABLE s (k BIGINT, a ARRAY<ARRAY<INT>>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'fields.a.length' = '400'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
