-- error: table "d" is joined, and written by the same job
-- fixed: 'path' = '/data/d/' => 'path' = '/data/o'
-- with: s_key
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '/data/d', 'format' = 'json');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = '/data/d/');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
