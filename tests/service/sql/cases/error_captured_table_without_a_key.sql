-- error: table "d" has no primary key, and its records are changes of rows
-- fixed: d (id BIGINT) => d (id BIGINT PRIMARY KEY NOT ENFORCED)
-- with: out_bigint
CREATE TABLE d (id BIGINT) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'table-name' = 'd');
INSERT INTO o SELECT id FROM d;
