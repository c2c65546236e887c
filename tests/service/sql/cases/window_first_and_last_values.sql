-- plan: AGGREGATE FIRST_VALUE(s.t):STRING AS a0, LAST_VALUE(s.amount) FILTER (WHERE (s.n > 0)):DECIMAL(8, 3) AS a1 | SELECT a0 AS first_text, a1 AS last_amount
-- with: s_event_time
CREATE TABLE o (first_text STRING, last_amount DECIMAL(8, 3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT FIRST_VALUE(t), LAST_VALUE(amount) FILTER (WHERE n > 0)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
