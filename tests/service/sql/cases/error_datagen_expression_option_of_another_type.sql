-- error: expected a number
-- fixed: ''x'' => ''2''
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.expression' = '#{Options.option ''1'',''x''}'
);
