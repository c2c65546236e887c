-- error: table "d" has no primary key
-- fixed: name STRING) WITH ('connector' = 'delta' => name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta'
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'delta', 'path' = 'd');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
