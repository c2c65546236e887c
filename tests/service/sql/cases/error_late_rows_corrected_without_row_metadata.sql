-- error: table "d" has 'join.late-rows.correct', but the rows of the output "o" do not tell their records
-- fixed: , 'row-metadata' = 'false' =>
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'o', 'row-metadata' = 'false');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
