-- error: unknown column "_source_offset"
-- fixed: d._source_offset => d.id
-- with: s_key out_bigint
CREATE TABLE d (id BIGINT) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
INSERT INTO o SELECT d._source_offset
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
