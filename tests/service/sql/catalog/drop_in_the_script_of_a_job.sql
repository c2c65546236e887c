-- error: "users" belongs to the catalog, which the script of a job cannot change
-- fixed: DROP TABLE users; =>
DROP TABLE users;
INSERT INTO sink SELECT s.user_id, 'x' FROM stream AS s;
