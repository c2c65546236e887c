-- error: "users" is of the catalog, which the script of a job leaves as it is
-- fixed: DROP TABLE users; =>
DROP TABLE users;
INSERT INTO sink SELECT s.user_id, 'x' FROM stream AS s;
