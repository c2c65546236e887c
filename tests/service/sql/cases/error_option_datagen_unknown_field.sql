-- error: names column "kk", which is not in the table
-- fixed: fields.kk.min => fields.k.min
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.kk.min' = '1'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
