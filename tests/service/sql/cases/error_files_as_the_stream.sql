-- error: table "s" is filesystem, which cannot be the stream
-- fixed: 'filesystem', 'path' = 's', 'format' = 'json' => 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = 's', 'format' = 'json');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
