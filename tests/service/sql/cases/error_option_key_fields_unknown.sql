-- error: key.fields names "y"
-- fixed: 'key.fields' = 'y' => 'key.fields' = 'x'
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'key.fields' = 'y', 'key.format' = 'json');
