-- plan: INSERT 1 | INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id | SELECT s.id AS id, m.user_name AS name | INTO a delta(a) | INSERT 2 | SELECT s.id AS id | INTO b delta(b)
-- with: subscriptions members
CREATE TABLE a (id STRING, name STRING) WITH ('connector' = 'delta', 'path' = 'a');
CREATE TABLE b (id STRING) WITH ('connector' = 'delta', 'path' = 'b');
BEGIN STATEMENT SET;
INSERT INTO a SELECT s.id, m.user_name FROM subscriptions AS s JOIN members FOR SYSTEM_TIME AS OF s.proc_time AS m ON s.user_id = m.user_id;
INSERT INTO b SELECT s.id FROM subscriptions AS s;
END;
