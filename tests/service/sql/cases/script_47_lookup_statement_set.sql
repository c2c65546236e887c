-- plan: INSERT 1 | INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id | WHERE (s.type = 'paid') | SELECT s.id AS id, m.user_name AS name | INTO a delta(a) | INSERT 2 | INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id | WHERE (s.type <> 'paid') | SELECT s.id AS id, m.age AS age | INTO b delta(b)
CREATE TEMPORARY TABLE subscriptions (
    `id` STRING,
    `user_id` INT,
    `type` STRING,
    `start_date` TIMESTAMP(3),
    `end_date` TIMESTAMP(3),
    `payment_expiration` TIMESTAMP(3),
    `proc_time` AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'subscriptions', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TEMPORARY TABLE members (
    `user_id` INT PRIMARY KEY,
    `user_name` VARCHAR(255) NOT NULL,
    `age` INT NOT NULL,
    `segment` VARCHAR(20)
) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'members');
CREATE TABLE a (id STRING, name STRING) WITH ('connector' = 'delta', 'path' = 'a');
CREATE TABLE b (id STRING, age INT) WITH ('connector' = 'delta', 'path' = 'b');
CREATE TEMPORARY VIEW enriched AS
SELECT s.id, s.type, m.user_name, m.age FROM subscriptions AS s JOIN members FOR SYSTEM_TIME AS OF s.proc_time AS m ON s.user_id = m.user_id;
EXECUTE STATEMENT SET
BEGIN
  INSERT INTO a SELECT id, user_name FROM enriched WHERE type = 'paid';
  INSERT INTO b (id, age) SELECT id, age FROM enriched WHERE type <> 'paid';
END;
