-- plan: INTO o kafka(o @ b:1, exactly once)
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once');
