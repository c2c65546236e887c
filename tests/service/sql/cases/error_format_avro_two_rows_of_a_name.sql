-- error: two columns are ROWs that Avro calls "record_r_x"
-- fixed: (r ROW<x ROW<a INT>>, r_x ROW<b INT>) => (r ROW<x ROW<a INT>>, rx ROW<b INT>)
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (r ROW<x ROW<a INT>>, r_x ROW<b INT>) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081');
INSERT INTO o SELECT CAST(NULL AS ROW<x ROW<a INT>>), CAST(NULL AS ROW<b INT>) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
