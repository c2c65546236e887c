-- error: does not make values of BIGINT
-- fixed: #{Name.fullName} => #{Number.numberBetween ''1'',''9''}
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.expression' = '#{Name.fullName}'
);
