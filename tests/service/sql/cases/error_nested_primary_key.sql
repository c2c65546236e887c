-- error: A key is of scalar columns
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (
    payload ROW<user_id BIGINT, `user` ROW<id BIGINT, mail STRING NOT NULL>, at_ms BIGINT>,
    items ARRAY<ROW<sku STRING, n INT>>, labels MAP<STRING, STRING>, n INT, k BIGINT, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (a ROW<i INT>, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT CAST(NULL AS ROW<i INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
