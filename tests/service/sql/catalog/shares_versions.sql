-- error: shared table "people" has WATERMARK FOR
-- fixed: , WATERMARK FOR at AS at =>
CREATE SHARED TABLE people (id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
  'database-name' = 'shop', 'table-name' = 'p');
