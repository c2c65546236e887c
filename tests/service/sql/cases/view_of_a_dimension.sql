-- plan: INNER JOIN d AS d mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, name STRING, price DECIMAL(10, 2); key id] ON s.k = d.id AND (CAST(d.price AS DECIMAL(12, 2)) > 1:DECIMAL(12, 2)) | SELECT s.k AS x, UPPER(d.name) AS y
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT id AS key, UPPER(name) AS label FROM d WHERE price > 1;
INSERT INTO o SELECT s.k, r.label FROM s JOIN v FOR SYSTEM_TIME AS OF s.p AS r ON s.k = r.key;
