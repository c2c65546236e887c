-- error: a window by processing time over a join by event time
-- fixed: DESCRIPTOR(p) => DESCRIPTOR(ts)
-- with: d_since s_event_time out_at_bigint
CREATE VIEW j AS SELECT s.* FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
INSERT INTO o SELECT window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(p), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
