-- warning: Table "s" has the options of Flink 1.10; they are read as 'connector' = 'kafka' with the options of later versions.
-- with: … out_bigint
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector.type' = 'kafka', 'connector.version' = 'universal', 'connector.topic' = 's',
    'connector.properties.0.key' = 'bootstrap.servers', 'connector.properties.0.value' = 'broker:9092',
    'connector.properties.group.id' = 'g', 'connector.startup-mode' = 'earliest-offset',
    'update-mode' = 'append', 'format.type' = 'csv', 'format.field-delimiter' = ';',
    'format.derive-schema' = 'true', 'format.ignore-parse-errors' = 'true'
);
CREATE TABLE d (id BIGINT, name STRING) WITH (
    'connector.type' = 'jdbc', 'connector.url' = 'jdbc:mysql://db:3306/shop',
    'connector.table' = 'd', 'connector.username' = 'cdc', 'connector.password' = 'hunter2',
    'connector.lookup.cache.max-rows' = '10', 'connector.lookup.cache.ttl' = '10s'
);
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON k = id;
