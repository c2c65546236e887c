-- error: "people" is TEMPORARY
-- fixed: TEMPORARY  =>
CREATE TEMPORARY TABLE people (id BIGINT) WITH ('connector' = 'blackhole');
