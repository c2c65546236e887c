-- error: table "e" has 'join.late-rows.correct', but no 'join.late-rows.wait', after which a record goes out with NULL
-- fixed: OPTIONS('join.late-rows.correct' => OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct'
-- with: s_plain d_small
CREATE TABLE e (id BIGINT PRIMARY KEY NOT ENFORCED, level STRING) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = 'x', 'database-name' = 'shop', 'table-name' = 'e');
CREATE TABLE o (name STRING, level STRING) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT d.name, e.level FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id LEFT JOIN e /*+ OPTIONS('join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = e.id;
