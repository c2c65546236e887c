-- error: table "d" has 'join.late-rows.correct', but a record may match several rows of table "d"
-- fixed: s.t = d.name => s.k = d.id
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.t = d.name;
