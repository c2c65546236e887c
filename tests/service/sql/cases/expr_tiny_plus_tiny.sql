-- plan: SELECT (s.tiny + s.tiny) AS x
-- with: d_priced s_all_types
CREATE TABLE o (x TINYINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT tiny + tiny
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
