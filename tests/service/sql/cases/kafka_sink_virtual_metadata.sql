-- plan: SELECT s.k AS k | INTO o kafka(out @ b:9092)
-- with: d_small s_key
CREATE TABLE o (k BIGINT, off BIGINT METADATA FROM 'offset' VIRTUAL) WITH ('connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
