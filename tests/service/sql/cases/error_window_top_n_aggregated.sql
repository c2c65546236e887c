-- error: GROUP BY of the rows that ROW_NUMBER() keeps of a window
-- fixed: SELECT window_start, COUNT(*) FROM (SELECT *, => SELECT window_start, rn FROM (SELECT *,
-- fixed:  GROUP BY window_start, window_end; => ;
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))) WHERE rn <= 3 GROUP BY window_start, window_end;
