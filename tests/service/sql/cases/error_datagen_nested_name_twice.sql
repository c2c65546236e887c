-- error: a column of datagen and a part of another one are both called "r.x"
-- fixed: `r.x` => x
-- with: d_by_shop out_string
CREATE TABLE s (k BIGINT, r ROW<x INT>, `r.x` INT, p AS PROCTIME()) WITH (
    'connector' = 'datagen', 'rows-per-second' = '10'
);
INSERT INTO o SELECT d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
