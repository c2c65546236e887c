-- plan: INTO o kafka(out @ b:9092, key name; k)
-- with: d_small s_key
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'b:9092',
    'format' = 'json', 'key.format' = 'json', 'key.fields' = 'name;k', 'sink.delivery-guarantee' = 'at-least-once');
INSERT INTO o SELECT k, name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
