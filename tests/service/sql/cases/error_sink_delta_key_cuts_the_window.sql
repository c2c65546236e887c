-- error: it lacks window_start
-- fixed: TIMESTAMP(0) => TIMESTAMP(3)
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(0), k BIGINT, x BIGINT, PRIMARY KEY (at, k) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
