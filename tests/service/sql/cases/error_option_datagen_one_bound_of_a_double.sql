-- error: option "fields.r.min" needs "fields.r.max"
-- fixed: 'fields.r.min' = '1' => 'fields.r.min' = '1', 'fields.r.max' = '2'
-- with: d_small
CREATE TABLE s (k BIGINT, r DOUBLE, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.r.min' = '1'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
