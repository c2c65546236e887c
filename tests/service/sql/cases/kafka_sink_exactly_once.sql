-- plan: INTO o kafka(o @ b:1, exactly once)
-- with: d_small s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
