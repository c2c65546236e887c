-- error: a statement that is no declaration
CREATE TABLE o (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT user_id FROM stream;
