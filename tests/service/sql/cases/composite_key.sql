-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [a BIGINT NOT NULL, b STRING NOT NULL, c INT; key b, a] ON s.t = d.b AND s.k = d.a
CREATE TABLE d (a BIGINT, b STRING, c INT, PRIMARY KEY (b, a) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF p ON b = t AND a = k;
