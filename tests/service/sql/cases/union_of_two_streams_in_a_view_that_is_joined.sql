-- plan: INSERT 1 | WHERE (u.name <> 'x') | INSERT 2 | WHERE (u.name <> 'x')
CREATE TABLE a (id BIGINT, user_id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE b (id STRING, amount INT, `of` STRING METADATA FROM 'topic' VIRTUAL, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'csv', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT user_id AS k, p FROM a UNION ALL SELECT amount, p FROM b;
INSERT INTO o SELECT v.k, u.name FROM v JOIN users FOR SYSTEM_TIME AS OF v.p AS u ON v.k = u.id WHERE u.name <> 'x';
