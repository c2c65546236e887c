-- error: expected ROW<`x` BIGINT>
-- fixed: o (x ROW<x BIGINT>) => o (x BIGINT)
-- fixed: SELECT payload => SELECT payload.user_id
-- with: d_named s_nested
CREATE TABLE o (x ROW<x BIGINT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT payload FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
