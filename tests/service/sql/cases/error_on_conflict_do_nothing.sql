-- error: ON CONFLICT DO NOTHING keeps the first row of each key of "o"
-- fixed: DO NOTHING => DO DEDUPLICATE
-- with: s_key
CREATE TABLE o (k BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT k FROM s ON CONFLICT DO NOTHING;
