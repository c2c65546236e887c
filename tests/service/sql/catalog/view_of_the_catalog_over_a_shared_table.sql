-- plan: INNER JOIN users AS users shared(users, kept by job 0199) [id BIGINT NOT NULL, name STRING, age INT; key id] ON s.user_id = users.id AND (users.age > 17)
INSERT INTO sink SELECT s.user_id, a.name FROM stream AS s
  JOIN adults FOR SYSTEM_TIME AS OF s.at AS a ON s.user_id = a.id;
