-- error: EMPTY OBJECT is not an ARRAY
-- fixed: EMPTY OBJECT => EMPTY ARRAY
-- with: d_priced s_all_types
CREATE TABLE o (x ARRAY<STRING>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT JSON_QUERY(t, '$.a' RETURNING ARRAY<STRING> EMPTY OBJECT ON ERROR)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
