-- plan: INNER JOIN people AS p mysql-cdc(shop.people @ db:3306) [id BIGINT NOT NULL, name STRING, level INT; key id] ON s.uid = p.id | INNER JOIN levels AS l mysql-cdc(shop.levels @ db:3306) [level INT NOT NULL, discount DECIMAL(3, 2); key level] ON p.level = l.level | WHERE (p.level IS NOT NULL) | SELECT s.id AS id, p.name AS name, CAST((s.amount * (1:DECIMAL(12, 2) - CAST(l.discount AS DECIMAL(12, 2))):DECIMAL(13, 2)):DECIMAL(24, 4) AS DECIMAL(20, 4)) AS net | INTO o print()
CREATE TABLE orders (id BIGINT, uid BIGINT, amount DECIMAL(10, 2), pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE people (id BIGINT, name STRING, level INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'people');
CREATE TABLE levels (level INT, discount DECIMAL(3, 2), PRIMARY KEY (level) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'levels');
CREATE TABLE o (id BIGINT, name STRING, net DECIMAL(20, 4)) WITH ('connector' = 'print');
INSERT INTO o
SELECT e.id, e.name, e.amount * (1 - l.discount)
FROM (SELECT s.id, s.amount, s.pt, p.name, p.level FROM orders AS s JOIN people FOR SYSTEM_TIME AS OF s.pt AS p ON s.uid = p.id WHERE p.level IS NOT NULL) AS e
JOIN levels FOR SYSTEM_TIME AS OF e.pt AS l ON e.level = l.level;
