-- plan: LEFT JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id | SELECT s.id AS id, m.user_name AS name | INTO sink print()
-- with: subscriptions members
CREATE TEMPORARY TABLE sink (id STRING, name STRING) WITH ('connector' = 'print');
INSERT INTO sink (id, name)
SELECT s.`id`, m.`user_name`
FROM subscriptions AS s
LEFT JOIN members FOR SYSTEM_TIME AS OF PROCTIME() AS m ON s.user_id = m.user_id;
