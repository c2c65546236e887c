-- plan: FROM s AS s datagen(10000/s, k random min 1 max 1000 skew 1.1, name random as #{Name.fullName} <#{Internet.emailAddress}> null-rate 0.05, state random as #{Options.option 'PAID','OPEN'} skew 2.0, n random as #{number.numberBetween '1','10'}, at_ random max-past 30000 ms, seen random as #{date.past '15','SECONDS'}) [k BIGINT, name STRING, state STRING, n INT, at_ TIMESTAMP_LTZ(3), seen TIMESTAMP(3), p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, name STRING, state STRING, n INT, at_ TIMESTAMP_LTZ(3), seen TIMESTAMP(3), p AS PROCTIME()) WITH (
    'connector' = 'datagen',
    'fields.k.min' = '1', 'fields.k.max' = '1000', 'fields.k.skew' = '1.1',
    'fields.name.expression' = '#{Name.fullName} <#{Internet.emailAddress}>', 'fields.name.null-rate' = '0.05',
    'fields.state.expression' = '#{Options.option ''PAID'',''OPEN''}', 'fields.state.skew' = '2',
    'fields.n.expression' = '#{number.numberBetween ''1'',''10''}',
    'fields.at_.max-past' = '30 s', 'fields.seen.expression' = '#{date.past ''15'',''SECONDS''}'
);
