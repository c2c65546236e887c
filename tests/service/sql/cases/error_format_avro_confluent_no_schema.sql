-- error: the schema cannot be read
-- fixed: , 'avro-confluent.schema' = 'Order' => 
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081', 'avro-confluent.schema' = 'Order');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
