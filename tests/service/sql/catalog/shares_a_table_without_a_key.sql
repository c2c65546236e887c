-- error: table "people" has no primary key
CREATE SHARED TABLE people (id BIGINT) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db',
  'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'table-name' = 'p');
