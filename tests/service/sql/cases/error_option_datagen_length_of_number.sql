-- error: has no effect on a random BIGINT
-- fixed: 'fields.k.length' = '3' => 'fields.k.max' = '3'
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.length' = '3'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
