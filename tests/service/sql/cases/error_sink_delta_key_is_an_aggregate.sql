-- error: column "x" of the primary key of table "o" is an aggregate
-- fixed: (at, k, x) => (at, k)
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (at, k, x) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o');
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
