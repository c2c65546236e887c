-- error: does not make values of DECIMAL(3, 2)
-- fixed: ''10'' => ''9''
-- with: … out_bigint
CREATE TABLE s (k BIGINT, v DECIMAL(3, 2)) WITH (
    'connector' = 'datagen', 'fields.v.expression' = '#{Number.randomDouble ''2'',''0'',''10''}'
);
INSERT INTO o SELECT k FROM s;
