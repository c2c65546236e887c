-- error: option "fields.r.min" has no effect on a random ROW<`x` INT>
-- with: d_by_shop out_string
CREATE TABLE s (k BIGINT, r ROW<x INT>, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'fields.r.min' = '1'
);
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
