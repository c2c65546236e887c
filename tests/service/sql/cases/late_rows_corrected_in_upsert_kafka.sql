-- plan: INTO o upsert-kafka(o @ broker:9092, key k) NOT NULL k
-- with: s_plain d_small
CREATE TABLE o (k BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
