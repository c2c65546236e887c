-- error: a job that reads the table cannot change it
-- fixed:  /*+ OPTIONS('hostname' = 'other') */ =>
INSERT INTO sink SELECT s.user_id, u.name FROM stream AS s
  JOIN users /*+ OPTIONS('hostname' = 'other') */ FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
