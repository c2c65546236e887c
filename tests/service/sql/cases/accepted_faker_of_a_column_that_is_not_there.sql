-- warning: Option "fields.zz.expression" of table "f" has no effect: the table has no physical column "zz".
-- with: … out_bigint
CREATE TABLE f (x BIGINT, tags ARRAY<STRING>) WITH (
    'connector' = 'faker', 'fields.x.expression' = '#{Number.numberBetween ''1'',''9''}',
    'fields.tags.expression' = '#{Lorem.word}', 'fields.tags.length' = '2', 'fields.zz.expression' = 'a'
);
INSERT INTO o SELECT x FROM f;
