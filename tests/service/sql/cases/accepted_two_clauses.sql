-- warning: PARTITIONED BY of table "o" has no effect: only delta tables are partitioned by columns.
-- with: s_key
CREATE TABLE o (k BIGINT) DISTRIBUTED BY HASH(k) INTO 4 BUCKETS PARTITIONED BY (k) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT k FROM s;
