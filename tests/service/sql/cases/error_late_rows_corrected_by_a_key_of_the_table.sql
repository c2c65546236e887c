-- error: table "d" has 'join.late-rows.correct', but column "name" of the output's key is of a joined table
-- fixed: (k, name) => (k)
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, name STRING, PRIMARY KEY (k, name) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '10 s', 'join.late-rows.correct' = '1 d') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
