-- plan: LOOKUP users BY broadcast (option of the table)
INSERT INTO sink SELECT s.user_id, u.name FROM stream AS s
  JOIN users /*+ OPTIONS('lookup.strategy' = 'broadcast') */ FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
