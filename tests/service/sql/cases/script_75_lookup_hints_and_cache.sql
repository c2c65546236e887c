-- plan: INNER JOIN people AS p mysql-cdc(shop.people @ db:3306) [id BIGINT NOT NULL, name STRING; key id] ON s.uid = p.id | SELECT s.id AS a, p.name AS b | INTO o print()
CREATE TABLE orders (id BIGINT, uid BIGINT, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'people');
CREATE TABLE o (a BIGINT, b STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT /*+ LOOKUP('table'='p', 'async'='true', 'output-mode'='allow_unordered', 'retry-predicate'='lookup_miss', 'retry-strategy'='fixed_delay', 'fixed-delay'='10s', 'max-attempts'='3') */ s.id, p.name FROM orders AS s JOIN people FOR SYSTEM_TIME AS OF s.pt AS p ON s.uid = p.id;
