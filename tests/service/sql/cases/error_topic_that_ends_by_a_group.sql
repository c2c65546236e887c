-- error: option "scan.bounded.mode" of table "d" has no effect on a dimension
-- fixed: , 'scan.bounded.mode' = 'group-offsets', 'properties.group.id' = 'g' =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'd',
    'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'scan.bounded.mode' = 'group-offsets', 'properties.group.id' = 'g');
