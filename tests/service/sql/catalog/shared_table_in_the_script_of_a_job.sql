-- error: CREATE SHARED TABLE "people" is no part of a job
CREATE SHARED TABLE people (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc',
  'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'table-name' = 'p');
INSERT INTO sink SELECT s.user_id, 'x' FROM stream AS s
  JOIN people FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
