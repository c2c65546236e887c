-- error: table "d" has 'join.late-rows.correct', but no 'join.late-rows.wait', after which a record goes out with NULL
-- fixed: 'join.late-rows.correct' => 'join.late-rows.wait' = '1 s', 'join.late-rows.correct'
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
