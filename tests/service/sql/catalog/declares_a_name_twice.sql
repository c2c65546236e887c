-- error: table "o" is declared twice
CREATE TABLE o (id BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE o (id BIGINT) WITH ('connector' = 'blackhole');
