-- warning: Option "lookup.cache" of table "d" has no effect: a dimension's rows are in a local index, which follows its source.
-- with: s_event_time out_bigint
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
INSERT INTO o SELECT s.k FROM s JOIN d /*+ OPTIONS('lookup.cache' = 'PARTIAL') */ FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
