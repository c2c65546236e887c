-- error: PRIMARY KEY
-- fixed: name STRING) => name STRING, PRIMARY KEY (id) NOT ENFORCED)
-- with: s_plain out_bigint_string
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'table-name' = 'd');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON LOWER(d.name) = s.t;
