-- error: table "d" has 'join.late-rows.correct', but the query has an INNER JOIN, which gives such a record no row to correct
-- fixed: FROM s JOIN => FROM s LEFT JOIN
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
