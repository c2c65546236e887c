-- error: "people" is TEMPORARY
CREATE TEMPORARY TABLE people (id BIGINT) WITH ('connector' = 'blackhole');
