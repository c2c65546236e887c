-- error: Did you mean "kafka"?
-- fixed: 'kafak' => 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json'
-- fixed: (k BIGINT) => (k BIGINT, p AS PROCTIME())
-- with: d_small
CREATE TABLE s (k BIGINT) WITH ('connector' = 'kafak');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
