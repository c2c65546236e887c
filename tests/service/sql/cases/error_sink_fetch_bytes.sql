-- error: option "properties.fetch.max.bytes" of table "o" has no effect on a sink
-- fixed: , 'properties.fetch.max.bytes' = '1000' =>
-- with: d_small s_key
CREATE TABLE o (x BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'properties.fetch.max.bytes' = '1000'
);
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
