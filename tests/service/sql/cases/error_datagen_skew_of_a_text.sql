-- error: has no effect on a random STRING
-- fixed: 'fields.name.skew' = '1' => 'fields.name.length' = '3'
-- with: d_small
CREATE TABLE s (k BIGINT, name STRING, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.name.skew' = '1'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
