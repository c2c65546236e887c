-- error: option "key.fields" needs "key.format"
-- fixed: 'key.fields' = 'x' => 'key.fields' = 'x', 'key.format' = 'json'
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'key.fields' = 'x');
