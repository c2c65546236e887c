-- error: table "d" is both joined and written by the same job
-- fixed: 'path' = '/data/d/' => 'path' = '/data/o'
-- with: s_key … join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = '/data/d', 'format' = 'json');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = '/data/d/');
