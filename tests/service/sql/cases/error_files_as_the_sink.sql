-- error: table "o" is filesystem, which cannot be written
-- fixed: 'filesystem', 'path' = 'o', 'format' = 'json' => 'delta', 'path' = 'o'
-- with: s_key
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
