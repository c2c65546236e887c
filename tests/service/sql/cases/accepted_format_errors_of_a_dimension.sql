-- warning: Option "value.json.ignore-parse-errors" of table "d" has no effect on a dimension.
-- with: s_with_id out_bigint
CREATE TABLE d (d_id BIGINT, name STRING, PRIMARY KEY (d_id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true'
);
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.d_id;
