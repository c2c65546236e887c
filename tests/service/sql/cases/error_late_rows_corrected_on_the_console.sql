-- error: table "d" has 'join.late-rows.correct', but the output "o" takes no updates
-- fixed: 'print' => 'delta', 'path' = 'o'
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
