-- plan: INSERT 1 | SELECT s.k AS x, d.name AS y | INTO o blackhole() | INSERT 2 | FROM s AS c kafka(s @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()] | WHERE (c.n > 3) | SELECT c.t AS t, d.price AS price | INTO prices delta(prices)
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, price DECIMAL(10, 2)) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
CREATE TABLE prices (t STRING, price DECIMAL(10, 2)) WITH ('connector' = 'delta', 'path' = 'prices');
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO prices SELECT c.t, d.price FROM s AS c
    JOIN d FOR SYSTEM_TIME AS OF c.p ON c.k = d.id WHERE c.n > 3;
END;
