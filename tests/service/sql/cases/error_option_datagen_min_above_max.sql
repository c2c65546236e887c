-- error: below "fields.k.min" 5
-- fixed: '5', 'fields.k.max' = '1' => '1', 'fields.k.max' = '5'
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.min' = '5', 'fields.k.max' = '1'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
