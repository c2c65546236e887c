-- plan: SELECT (window_start + INTERVAL '1' SECOND) AS at, a0 AS x
-- with: s_event_time out_at_bigint
CREATE VIEW w AS SELECT window_start, window_end, window_start + INTERVAL '1' SECOND AS next FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
INSERT INTO o SELECT next, COUNT(*) FROM w GROUP BY window_start, window_end;
