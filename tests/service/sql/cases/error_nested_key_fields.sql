-- error: key.fields names "a"
-- fixed: 'key.fields' = 'a' => 'key.fields' = 'x'
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<INT>, x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'key.format' = 'json', 'key.fields' = 'a');
INSERT INTO o SELECT CAST(NULL AS ARRAY<INT>), k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
