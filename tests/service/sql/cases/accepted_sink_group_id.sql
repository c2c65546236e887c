-- warning: Option "properties.group.id" of table "o" has no effect on a sink.
-- with: d_small s_key … join_k
CREATE TABLE o (x BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json', 'properties.group.id' = 'etl'
);
