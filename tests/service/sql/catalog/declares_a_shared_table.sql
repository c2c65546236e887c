-- declares: shared people (id, name) key (id)
CREATE SHARED TABLE people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc',
  'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'table-name' = 'p');
