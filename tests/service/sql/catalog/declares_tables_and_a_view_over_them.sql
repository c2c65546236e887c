-- declares: table people (id, name) key (id) | view names
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'people');
CREATE VIEW names AS SELECT p.name, u.age FROM stream AS s JOIN people FOR SYSTEM_TIME AS OF s.at AS p ON p.id = s.user_id
  JOIN users FOR SYSTEM_TIME AS OF s.at AS u ON u.id = s.user_id;
