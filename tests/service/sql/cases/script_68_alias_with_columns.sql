-- plan: INNER JOIN people AS p mysql-cdc(shop.people @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON s.uid = p.id | SELECT s.id AS a, p.name AS b | INTO o print()
CREATE TABLE orders (id BIGINT, uid BIGINT, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'people');
CREATE TABLE o (a BIGINT, b STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT s.order_id, p.who FROM orders AS s (order_id, customer, pt) JOIN people FOR SYSTEM_TIME AS OF s.pt AS p (person, who) ON s.customer = p.person;
