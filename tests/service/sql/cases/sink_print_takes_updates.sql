-- plan: INTO o print()
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'print');
SET 'table.exec.emit.allow-lateness' = '1 min';
