-- error: has no effect on a column with an expression
-- fixed: 'fields.n.min' = '3', => 
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, n INT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.n.min' = '3', 'fields.n.expression' = '#{Number.numberBetween ''1'',''9''}'
);
