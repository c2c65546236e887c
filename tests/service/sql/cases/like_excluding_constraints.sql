-- plan: INNER JOIN e AS e mysql-cdc(shop.d @ db:3306) [id BIGINT, name STRING NOT NULL, price DECIMAL(10, 2); key name] ON s.k = e.id
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
CREATE TABLE e (PRIMARY KEY (name) NOT ENFORCED) LIKE d (EXCLUDING CONSTRAINTS);
INSERT INTO o SELECT s.k, e.name FROM s JOIN e FOR SYSTEM_TIME AS OF s.p ON s.k = e.id;
