-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3307) [id BIGINT NOT NULL; key id] ON s.k = d.id
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd',
    'port' = '3307', 'server-id' = '5400', 'scan.incremental.snapshot.chunk.size' = '100', 'changelog.partitions' = '3'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
