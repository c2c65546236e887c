-- error: CARDINALITY takes an ARRAY or a MAP, not NULL
-- fixed: CARDINALITY(NULL) => CARDINALITY(items)
-- with: d_named s_nested
CREATE TABLE o (a INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CARDINALITY(NULL) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
