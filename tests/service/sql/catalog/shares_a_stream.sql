-- error: option "scan.startup.mode" of table "o" has no effect on a dimension
-- fixed: , 'scan.startup.mode' = 'earliest-offset' =>
CREATE SHARED TABLE o (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 't',
  'properties.bootstrap.servers' = 'k:9092', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
