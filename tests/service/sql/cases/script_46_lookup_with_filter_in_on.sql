-- plan: INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id AND ((m.age >= 18) AND ((m.segment = 'gold') AND (s.type <> 'trial'))) | SELECT s.id AS id, m.user_name AS name, s.start_date AS since | INTO adults print()
-- with: subscriptions members
CREATE TABLE adults (id STRING, name STRING, since TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO adults
SELECT s.id, m.user_name, s.start_date
FROM subscriptions s
INNER JOIN members FOR SYSTEM_TIME AS OF s.proc_time m
ON m.user_id = s.user_id AND m.age >= 18 AND m.segment = 'gold' AND s.type <> 'trial';
