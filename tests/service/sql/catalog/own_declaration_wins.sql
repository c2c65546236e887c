-- plan: INNER JOIN users AS u mysql-cdc(shop.other @ db:3306) [id BIGINT NOT NULL; key id] ON s.user_id = u.id
CREATE TABLE users (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db',
  'username' = 'cdc', 'password' = '${secret:shop}', 'database-name' = 'shop', 'table-name' = 'other');
INSERT INTO sink SELECT s.user_id, 'x' FROM stream AS s
  JOIN users FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
