-- warning: Option "sink.transactional-id-prefix" of table "o" has no effect: at-least-once has no transactions.
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'sink.transactional-id-prefix' = 'a');
