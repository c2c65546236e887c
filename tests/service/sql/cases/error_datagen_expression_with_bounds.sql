-- error: has no effect on a column with an expression
-- fixed: 'fields.n.min' = '3', => 
-- with: d_small
CREATE TABLE s (k BIGINT, n INT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.n.min' = '3', 'fields.n.expression' = '#{Number.numberBetween ''1'',''9''}'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
