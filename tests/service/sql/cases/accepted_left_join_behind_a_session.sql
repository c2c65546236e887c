-- warning: Table "d" is joined when a row comes, not when its window ends.
-- with: s_event_time d_small out_at_bigint
INSERT INTO o SELECT window_start, COUNT(d.name)
FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id GROUP BY window_start, window_end;
