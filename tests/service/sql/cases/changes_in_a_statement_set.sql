-- plan: INTO o upsert-kafka(o @ broker:9092, key id) NOT NULL id
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE u (x BIGINT) WITH ('connector' = 'print');
EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT k, t FROM s; INSERT INTO u SELECT k FROM s WHERE n > 1; END;
