-- error: table "d" has 'join.late-rows.wait', but the output is upsert-kafka, where a record that has waited could replace the row of a newer one
-- fixed:  PRIMARY KEY NOT ENFORCED, name =>  , name
-- fixed: 'upsert-kafka', 'key.format' = 'json', 'value.format' => 'kafka', 'format'
-- with: s_plain d_small
CREATE TABLE o (k BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092');
INSERT INTO o SELECT s.k + 1, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '5 min') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
