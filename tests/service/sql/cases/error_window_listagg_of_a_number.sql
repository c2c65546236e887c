-- error: LISTAGG takes STRING, not INT
-- fixed: LISTAGG(n) => LISTAGG(CAST(n AS STRING))
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, LISTAGG(n)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
