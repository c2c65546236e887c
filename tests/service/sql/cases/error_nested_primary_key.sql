-- error: Use scalar columns
-- fixed: o (a ROW<i INT>, => o (a INT,
-- fixed: CAST(NULL AS ROW<i INT>) => n
-- with: d_named s_nested
CREATE TABLE o (a ROW<i INT>, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT CAST(NULL AS ROW<i INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
