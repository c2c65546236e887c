-- error: it lacks window_start
-- fixed: PRIMARY KEY (k) => PRIMARY KEY (at, k)
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
