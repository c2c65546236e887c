-- error: has "-1" where a number of digits belongs
-- fixed: ''-1'' => ''1''
-- with: … out_bigint
CREATE TABLE s (k BIGINT, v DOUBLE) WITH (
    'connector' = 'datagen', 'fields.v.expression' = '#{Number.randomDouble ''-1'',''0'',''10''}'
);
INSERT INTO o SELECT k FROM s;
