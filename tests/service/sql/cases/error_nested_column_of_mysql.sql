-- error: Declare a JSON column as STRING
-- fixed: a ARRAY<INT> => a STRING
CREATE TABLE t (id INT, a ARRAY<INT>, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'table-name' = 'd');
