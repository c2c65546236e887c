-- error: not a value of TINYINT
-- fixed: '300' => '127'
-- with: d_small
CREATE TABLE s (k TINYINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.max' = '300'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
