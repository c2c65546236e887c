-- error: has no effect on a sequence
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.kind' = 'sequence', 'fields.k.min' = '1', 'fields.k.start' = '1', 'fields.k.end' = '2'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
