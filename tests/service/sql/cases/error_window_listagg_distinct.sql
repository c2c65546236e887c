-- error: LISTAGG(DISTINCT …) is not supported
-- fixed: LISTAGG(DISTINCT t) => LISTAGG(t, ', ')
-- with: s_event_time
CREATE TABLE o (at TIMESTAMP(3), x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, LISTAGG(DISTINCT t)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
