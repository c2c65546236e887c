-- plan: INNER JOIN people AS u mysql-cdc(shop.people @ db:3306) [id BIGINT NOT NULL, name STRING, age INT; key id] ON s.user_id = u.id
CREATE TABLE people WITH ('table-name' = 'people') LIKE users;
INSERT INTO sink SELECT s.user_id, u.name FROM stream AS s
  JOIN people FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
