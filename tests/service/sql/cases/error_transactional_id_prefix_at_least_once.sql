-- error: has no effect with at-least-once
-- fixed: 'sink.transactional-id-prefix' => 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix'
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'sink.transactional-id-prefix' = 'a');
