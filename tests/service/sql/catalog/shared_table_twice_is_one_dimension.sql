-- plan: LEFT JOIN users AS b shared(users, kept by job 0199) [id BIGINT NOT NULL, name STRING, age INT; key id] ON s.user_id = b.id
INSERT INTO sink SELECT s.user_id, b.name FROM stream AS s
  JOIN users FOR SYSTEM_TIME AS OF s.at AS a ON s.user_id = a.id
  LEFT JOIN users FOR SYSTEM_TIME AS OF s.at AS b ON s.user_id = b.id;
