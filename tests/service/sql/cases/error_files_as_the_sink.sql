-- error: table "o" is filesystem, which cannot be written
-- fixed: 'filesystem', 'path' = 'o', 'format' = 'json' => 'delta', 'path' = 'o'
-- with: s_key … join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');
