-- error: table "o" has no primary key, but table.exec.emit.allow-lateness gives updates
-- fixed: x BIGINT) => x BIGINT, PRIMARY KEY (at, k) NOT ENFORCED)
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
