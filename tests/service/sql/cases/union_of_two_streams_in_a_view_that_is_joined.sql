-- plan: INSERT 1 | WHERE (u.name <> 'x') | INSERT 2 | WHERE (u.name <> 'x')
-- with: a_orders b_topic
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT user_id AS k, p FROM a UNION ALL SELECT amount, p FROM b;
INSERT INTO o SELECT v.k, u.name FROM v JOIN users FOR SYSTEM_TIME AS OF v.p AS u ON v.k = u.id WHERE u.name <> 'x';
