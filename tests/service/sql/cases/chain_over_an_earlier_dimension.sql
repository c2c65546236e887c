-- plan: INNER JOIN m AS m mysql-cdc(shop.d @ db:3306) [id BIGINT NOT NULL, code INT; key id] ON s.k = m.id | LEFT JOIN e AS e mysql-cdc(shop.d @ db:3306) [code INT NOT NULL, label STRING; key code] ON m.code = e.code
-- with: d_small
CREATE TABLE e (code INT PRIMARY KEY NOT ENFORCED, label STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE m (id BIGINT PRIMARY KEY NOT ENFORCED, code INT) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT e.label FROM s JOIN m FOR SYSTEM_TIME AS OF s.p ON s.k = m.id LEFT JOIN e FOR SYSTEM_TIME AS OF s.p ON m.code = e.code;
