-- plan: WINDOW TUMBLE of s.ts, size 60000 ms | EMIT windows when the watermark has reached their end
-- with: d_since s_event_time
CREATE TABLE o (at TIMESTAMP(3), name STRING, x BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW j AS SELECT s.*, d.name FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO o SELECT window_start, name, COUNT(*)
FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, name;
