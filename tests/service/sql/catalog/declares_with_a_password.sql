-- error: option "password" contains the secret itself, and the catalog stores no secrets
-- fixed: 'open sesame' => '${secret:password}'
CREATE TABLE people (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db',
  'username' = 'cdc', 'password' = 'open sesame', 'database-name' = 'shop', 'table-name' = 'p');
