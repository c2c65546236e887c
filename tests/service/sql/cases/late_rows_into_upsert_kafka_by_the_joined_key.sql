-- plan: INTO o upsert-kafka(o @ broker:9092, key n; k) NOT NULL k, n
-- with: s_plain d_small
CREATE TABLE o (k BIGINT, n INT, name STRING, PRIMARY KEY (n, k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092');
INSERT INTO o SELECT s.k, s.n, d.name FROM s LEFT JOIN d /*+ OPTIONS('join.late-rows.wait' = '5 min') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
