-- error: option "snapshot.settle-time" has no effect on a bounded table
-- fixed: , 'scan.bounded.mode' = 'latest-offset' =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'snapshot.settle-time' = '1 s', 'scan.bounded.mode' = 'latest-offset');
