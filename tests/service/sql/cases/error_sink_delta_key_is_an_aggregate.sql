-- error: column "x" of the primary key of table "o" is an aggregate
-- fixed: (at, k, x) => (at, k)
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (at, k, x) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
