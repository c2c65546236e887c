-- error: option "fields.r.y.min" names column "r.y", which is not in the table
-- fixed: fields.r.y.min => fields.r.x.min
-- with: d_by_shop out_string
CREATE TABLE s (k BIGINT, r ROW<x INT>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'fields.r.y.min' = '1'
);
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
