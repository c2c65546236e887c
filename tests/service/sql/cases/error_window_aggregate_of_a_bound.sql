-- error: "window_end" is a bound of the window, not a column of its rows
-- fixed: MAX(window_end) => MAX(n)
-- with: s_event_time out_at_bigint
INSERT INTO o SELECT window_start, MAX(window_end)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
