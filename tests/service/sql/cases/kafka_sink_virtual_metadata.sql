-- plan: SELECT s.k AS k | INTO o kafka(out @ b:9092)
-- with: d_small s_key … join_k
CREATE TABLE o (k BIGINT, off BIGINT METADATA FROM 'offset' VIRTUAL) WITH ('connector' = 'kafka', 'topic' = 'out', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
