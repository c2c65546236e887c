-- error: option "key.fields" needs "key.format"
-- fixed: 'key.fields' = 'x' => 'key.fields' = 'x', 'key.format' = 'json'
-- with: d_small s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'key.fields' = 'x');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
