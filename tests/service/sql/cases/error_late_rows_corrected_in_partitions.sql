-- error: table "d" has 'join.late-rows.correct', but the output "o" is PARTITIONED BY columns, and its rows change
-- fixed:  PARTITIONED BY (name) =>
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, name STRING) PARTITIONED BY (name) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
