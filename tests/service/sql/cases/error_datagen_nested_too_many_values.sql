-- error: column "a.element" of datagen has 1200 values a row, expected at most 1000
-- fixed: '400' => '400', 'fields.a.element.length' = '2'
-- with: d_by_shop out_string
CREATE TABLE s (k BIGINT, a ARRAY<ARRAY<INT>>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'fields.a.length' = '400'
);
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
