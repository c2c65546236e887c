-- error: table "d" is filesystem, which has no PARTITIONED BY
-- fixed: , day STRING =>
-- fixed: PARTITIONED BY (day) =>
-- with: orders out_id_name
CREATE TABLE d (id BIGINT, name STRING, day STRING) PARTITIONED BY (day) WITH ('connector' = 'filesystem', 'path' = '/data/d', 'format' = 'json');
INSERT INTO o SELECT o.id, d.name FROM orders AS o JOIN d FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = d.id;
