-- error: table "d" has 'join.late-rows.wait' of 300000 ms, and table "e" of 60000 ms; a record has one bound
-- fixed: '1 min' => '300000 ms'
-- with: s_plain d_small
CREATE TABLE e (id BIGINT PRIMARY KEY NOT ENFORCED, level STRING) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = 'x', 'database-name' = 'shop', 'table-name' = 'e');
CREATE TABLE o (name STRING, level STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT d.name, e.level FROM s JOIN d /*+ OPTIONS('join.late-rows.wait' = '5 min') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id LEFT JOIN e /*+ OPTIONS('join.late-rows.wait' = '1 min') */ FOR SYSTEM_TIME AS OF s.p ON s.k = e.id;
