-- error: option "scan.startup.mode" of table "o" is "latest-offset", which leaves out rows of a dimension
-- fixed: , 'scan.startup.mode' = 'latest-offset' =>
CREATE SHARED TABLE o (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 't',
  'properties.bootstrap.servers' = 'k:9092', 'format' = 'json', 'scan.startup.mode' = 'latest-offset');
