-- error: has no INSERT INTO
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
