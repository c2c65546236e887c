-- error: Did you mean "kafka"?
-- fixed: 'kafak' => 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json'
-- fixed: (k BIGINT) => (k BIGINT, p AS PROCTIME())
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT) WITH ('connector' = 'kafak');
