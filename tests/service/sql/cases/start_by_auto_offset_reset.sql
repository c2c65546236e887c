-- plan: FROM s AS s kafka(s @ b:1, earliest-offset, until latest-offset or 10000 records a partition) [k BIGINT]
CREATE TABLE s (k BIGINT) WITH ('connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json', 'properties.auto.offset.reset' = 'earliest');
SELECT k FROM s;
