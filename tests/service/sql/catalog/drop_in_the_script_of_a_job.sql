-- error: "users" is of the catalog, which the script of a job leaves as it is
DROP TABLE users;
INSERT INTO sink SELECT s.user_id, 'x' FROM stream AS s;
