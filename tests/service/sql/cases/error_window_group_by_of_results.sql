-- error: GROUP BY of the results of a window
-- with: s_event_time out_at_bigint
CREATE VIEW w AS SELECT window_start AS at, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
INSERT INTO o SELECT at, n FROM w GROUP BY at, n;
