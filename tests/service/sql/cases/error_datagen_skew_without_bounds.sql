-- error: option "fields.k.skew" needs
-- fixed: 'fields.k.skew' => 'fields.k.min' = '1', 'fields.k.max' = '9', 'fields.k.skew'
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.skew' = '1.1'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
