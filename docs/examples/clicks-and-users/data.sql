CREATE DATABASE IF NOT EXISTS example_clicks;
USE example_clicks;
CREATE TABLE IF NOT EXISTS users (user_id BIGINT PRIMARY KEY, name VARCHAR(80) NOT NULL, plan VARCHAR(10) NOT NULL);
INSERT IGNORE INTO users
SELECT seq, CONCAT('user ', seq), ELT(1 + seq % 3, 'free', 'team', 'business') FROM seq_1_to_500;
