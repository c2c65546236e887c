-- error: lacks "t" of the key of "s"
-- fixed: o (x BIGINT, PRIMARY KEY (x) NOT ENFORCED) => o (x BIGINT, y STRING, PRIMARY KEY (x, y) NOT ENFORCED)
-- fixed: SELECT k FROM => SELECT k, t FROM
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k, t) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (x BIGINT, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT k FROM s;
