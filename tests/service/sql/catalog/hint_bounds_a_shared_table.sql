-- plan: INNER JOIN users AS u shared(users, kept by job 0199) [id BIGINT NOT NULL, name STRING, age INT; key id] ON s.user_id = u.id
INSERT INTO sink SELECT s.user_id, u.name FROM stream AS s
  JOIN users /*+ OPTIONS('join.max-staleness' = '5 s') */ FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
