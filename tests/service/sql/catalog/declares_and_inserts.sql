-- error: a statement that is no declaration
-- fixed: INSERT INTO o SELECT user_id FROM stream; =>
CREATE TABLE o (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT user_id FROM stream;
