-- warning: Option "fields.name.expression" of table "s": words are made for #{superhero.name}, which is not known here.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, name STRING, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.name.expression' = '#{superhero.name}'
);
