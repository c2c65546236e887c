-- plan: INSERT 1 | INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id | WHERE (s.type = 'paid') | SELECT s.id AS id, m.user_name AS name | INTO a delta(a) | INSERT 2 | INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id | WHERE (s.type <> 'paid') | SELECT s.id AS id, m.age AS age | INTO b delta(b)
-- with: subscriptions members
CREATE TABLE a (id STRING, name STRING) WITH ('connector' = 'delta', 'path' = 'a');
CREATE TABLE b (id STRING, age INT) WITH ('connector' = 'delta', 'path' = 'b');
CREATE TEMPORARY VIEW enriched AS
SELECT s.id, s.type, m.user_name, m.age FROM subscriptions AS s JOIN members FOR SYSTEM_TIME AS OF s.proc_time AS m ON s.user_id = m.user_id;
EXECUTE STATEMENT SET
BEGIN
  INSERT INTO a SELECT id, user_name FROM enriched WHERE type = 'paid';
  INSERT INTO b (id, age) SELECT id, age FROM enriched WHERE type <> 'paid';
END;
