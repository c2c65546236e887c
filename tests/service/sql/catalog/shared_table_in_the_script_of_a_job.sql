-- error: CREATE SHARED TABLE "people" is not allowed in the script of a job
-- fixed: CREATE SHARED TABLE people (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'p'); =>
-- fixed: JOIN people => JOIN users
CREATE SHARED TABLE people (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'p');
INSERT INTO sink SELECT s.user_id, 'x' FROM stream AS s
  JOIN people FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
