-- error: table "d" has 'join.late-rows.correct', but table "e" has none, and a record has one bound
-- fixed: 'join.late-rows.wait' = '10 s') */ FOR SYSTEM_TIME AS OF s.p ON s.k = e.id => 'join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '86400000 ms') */ FOR SYSTEM_TIME AS OF s.p ON s.k = e.id
-- with: s_plain d_small
CREATE TABLE e (id BIGINT PRIMARY KEY NOT ENFORCED, level STRING) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = 'x', 'database-name' = 'shop', 'table-name' = 'e');
CREATE TABLE o (name STRING, level STRING) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT d.name, e.level FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id LEFT JOIN e /*+ OPTIONS('join.late-rows.wait' = '10 s') */ FOR SYSTEM_TIME AS OF s.p ON s.k = e.id;
