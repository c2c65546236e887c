-- plan: LEFT JOIN people AS p mysql-cdc(shop.people @ db:3306) [id BIGINT NOT NULL, org INT, name STRING; key id] ON CAST(l.uid AS BIGINT) = p.id AND (p.org = 7) | SELECT l.ip AS a, p.name AS b | INTO o print()
CREATE TABLE logs (ip STRING, uid STRING, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'logs', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE people (id BIGINT, org INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'people');
CREATE TABLE o (a STRING, b STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT l.ip, p.name FROM logs AS l LEFT JOIN people FOR SYSTEM_TIME AS OF l.pt AS p ON p.id = CAST(l.uid AS BIGINT) AND p.org = 7;
