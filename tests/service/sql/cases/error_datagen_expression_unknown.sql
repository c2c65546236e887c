-- error: which is not known here
-- fixed: superhero.name => Name.fullName
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, name STRING, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.name.expression' = '#{superhero.name}'
);
