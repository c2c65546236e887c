-- error: column "t" is TIMESTAMP_LTZ(3), and with timestamp_mapping.legacy Avro has only TIMESTAMP(3)
-- fixed: 'format' = 'avro-confluent' => 'format' = 'avro-confluent', 'avro-confluent.timestamp_mapping.legacy' = 'false'
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (t TIMESTAMP_LTZ(3)) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081');
INSERT INTO o SELECT CAST(NULL AS TIMESTAMP_LTZ(3)) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
