-- error: a job that attaches to it cannot change it
-- fixed: 'hostname' = 'other' => 'lookup.strategy' = 'broadcast'
INSERT INTO sink SELECT s.user_id, u.name FROM stream AS s
  JOIN users /*+ OPTIONS('hostname' = 'other') */ FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
